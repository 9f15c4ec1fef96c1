/* build/train: trains a transformer, under mpirun. Exit status: 0, or 2 on bad input or misuse. */
#include "base/language.h"
#include "train/program.h"
#include "train/trainer.h"

int main(int argc, char **argv)
{
    language_begin();
    TrainConfig config;
    Problem problem = {0};
    bool good = train_config(&config, argc, argv, &problem);
    if (config.dry) /* only checks the options, perhaps on a machine that cannot start ranks */
        return program_dry(good && train_config_dry(&config, &problem), &problem);
    Group *world = program_begin(argc, argv);
    good = program_devices(world, &problem) &&
           agree(world,
                 good && train_config_check(&config, group_size(world), &problem) &&
                     backend_set_products(config.amp, config.model.hidden, &problem),
                 &problem);
    if (good) {
        program_warn(world);
        good = train(&config, world, &program_stop, &problem);
    }
    return program_end(world, good, &problem);
}
