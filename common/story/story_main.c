/* build/story: generates a text with a trained language model, under mpirun. Exit status: 0, or 2
   on bad input or misuse. */
#include "base/language.h"
#include "story/story.h"
#include "train/program.h"
#include "train/trainer.h"

int main(int argc, char **argv)
{
    language_begin();
    StoryConfig config;
    Problem problem = {0};
    bool good = story_config(&config, argc, argv, &problem);
    if (config.run.dry)
        return program_dry(good && train_config_grid(&config.run, config.run.ranks, &problem),
                           &problem);
    Group *world = program_begin(argc, argv);
    good = program_devices(world, &problem) &&
           agree(world, good && train_config_grid(&config.run, group_size(world), &problem),
                 &problem) &&
           story_write(&config, world, &problem);
    return program_end(world, good, &problem);
}
