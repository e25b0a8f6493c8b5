/* measure.h - clocks, memory and percentiles for the benchmarks.
 *
 * CPU time of another process is read from the kernel's process clock, in
 * nanoseconds and with threads that have ended; /proc/<pid>/stat would count
 * in ticks of 10 ms. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t bench_now_us(void); /* monotonic */
/* CPU used so far by a process (0: this one), 0 when it is gone. */
int64_t bench_cpu_us(int pid);
int64_t bench_rss_kb(int pid);
int64_t bench_peak_rss_kb(int pid);

struct bench_samples {
	int64_t *v;
	size_t n, cap;
};
void bench_sample(struct bench_samples *s, int64_t v);
/* The value below which a share q (0 to 1) lies; sorts. 0 when empty. */
int64_t bench_percentile(struct bench_samples *s, double q);
void bench_samples_fini(struct bench_samples *s);

/* Raises the limit of open files as far as it goes and returns it. */
size_t bench_raise_files(void);
/* One result for bench/run: "name=value". */
void bench_put(const char *name, double value);
/* Prints the reason and ends the program. */
void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void *bench_alloc(void *old, size_t bytes); /* never NULL */

/* Options "--name value": the program's argv in, the value or fallback out. */
const char *bench_option(char **argv, const char *name, const char *fallback);
int64_t bench_number(char **argv, const char *name, int64_t fallback);

#endif
