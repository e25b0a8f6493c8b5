/* config_fuzz.c - any bytes as a configuration file.
 *
 * What loads must list without its secret; what does not must say why. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "app/config.h"
#include "app/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void list(const struct uar_config_set *set)
{
	struct uar_buf out = uar_buf_make(1 << 20);

	uar_config_print(set, &out);
	uar_config_print_json(set, &out);
	if (out.err == UAR_ENOMEM || out.n == 0)
		__builtin_trap();
	uar_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char *const env[] = { "HOME=/h", NULL };
	struct uar_buf problems = uar_buf_make(UAR_LIMIT_CONFIG_PROBLEMS);
	struct uar_config_set *set = NULL;
	char path[40];
	int fd = memfd_create("config", 0);

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		__builtin_trap();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (uar_config_load(&(struct uar_config_input){ .env = env, .file = path }, &set,
			    &problems) == UAR_OK)
		list(set);
	else if (problems.n == 0)
		__builtin_trap();
	uar_config_destroy(set);
	uar_buf_fini(&problems);
	close(fd);
	return 0;
}
