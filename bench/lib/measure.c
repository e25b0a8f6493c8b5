/* measure.c - see measure.h. */
#include "lib/measure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	if (clock_gettime(id, &t))
		return 0;
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t bench_now_us(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t bench_cpu_us(int pid)
{
	clockid_t id = CLOCK_PROCESS_CPUTIME_ID;

	if (pid && clock_getcpuclockid(pid, &id))
		return 0;
	return read_clock(id);
}

/* The number after `key` in /proc/<pid>/status, in kB. */
static int64_t status_kb(int pid, const char *key)
{
	char path[64], line[256];
	int64_t kb = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/status", pid ? pid : (int)getpid());
	f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtoll(line + strlen(key), NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

int64_t bench_rss_kb(int pid)
{
	return status_kb(pid, "VmRSS:");
}

int64_t bench_peak_rss_kb(int pid)
{
	return status_kb(pid, "VmHWM:");
}

void bench_sample(struct bench_samples *s, int64_t v)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 1024;
		s->v = bench_alloc(s->v, s->cap * sizeof *s->v);
	}
	s->v[s->n++] = v;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t bench_percentile(struct bench_samples *s, double q)
{
	if (!s->n)
		return 0;
	qsort(s->v, s->n, sizeof *s->v, by_value);
	return s->v[(size_t)((double)(s->n - 1) * q)];
}

void bench_samples_fini(struct bench_samples *s)
{
	free(s->v);
	*s = (struct bench_samples){ 0 };
}

size_t bench_raise_files(void)
{
	struct rlimit most = { 1 << 20, 1 << 20 }, r;

	if (setrlimit(RLIMIT_NOFILE, &most) == 0)
		return most.rlim_cur; /* root may raise the hard limit too */
	if (getrlimit(RLIMIT_NOFILE, &r))
		return 0;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	return r.rlim_cur;
}

void bench_put(const char *name, double value)
{
	printf("%s=%.6g\n", name, value);
	fflush(stdout);
}

void bench_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void *bench_alloc(void *old, size_t bytes)
{
	void *p = realloc(old, bytes);

	if (!p)
		bench_die("out of memory");
	return p;
}

const char *bench_option(char **argv, const char *name, const char *fallback)
{
	for (char **a = argv; a[0] && strcmp(a[0], "--") != 0; a++)
		if (strcmp(a[0], name) == 0 && a[1])
			return a[1];
	return fallback;
}

int64_t bench_number(char **argv, const char *name, int64_t fallback)
{
	const char *text = bench_option(argv, name, NULL);

	return text ? strtoll(text, NULL, 10) : fallback;
}
