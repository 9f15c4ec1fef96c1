#include "grader/plays/groups.h"

void PLAY(Play *play)
{
    const Mesh *mesh = play->mesh;
    write_group(play, "dp", mesh->dp, mesh->dp_rank, mesh->dp_degree);
    write_group(play, "tp", mesh->tp, mesh->tp_rank,
                mesh->tp_degree); /* what balise 8 made must have remained */
}
