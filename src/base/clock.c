/* clock.c - the system clock and RFC 3339. */
#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t system_wall(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_REALTIME);
}

static int64_t system_mono(void *ctx)
{
	(void)ctx;
	return read_clock(CLOCK_MONOTONIC);
}

const struct uar_clock uar_clock_system = { system_wall, system_mono, NULL };

/* Days since 1970-01-01 of a proleptic Gregorian date: whole 400-year eras plus
 * the day inside the era, with the year beginning in March. */
static int64_t days_from_date(int64_t y, int m, int d)
{
	int64_t era, doe;
	int yoe, doy;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	yoe = (int)(y - era * 400);
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	doe = (int64_t)yoe * 365 + yoe / 4 - yoe / 100 + doy;
	return era * 146097 + doe - 719468;
}

static void date_from_days(int64_t days, int *y, int *m, int *d)
{
	int64_t z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int doe = (int)(z - era * 146097);
	int yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	int doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int mp = (5 * doy + 2) / 153;

	*d = doy - (153 * mp + 2) / 5 + 1;
	*m = mp < 10 ? mp + 3 : mp - 9;
	*y = (int)(yoe + era * 400) + (*m <= 2);
}

static char *put_2(char *p, unsigned v)
{
	p[0] = (char)('0' + v / 10);
	p[1] = (char)('0' + v % 10);
	return p + 2;
}

enum { SECOND_TEXT = 20 };

/* "2026-01-02T03:04:05.", which is SECOND_TEXT long */
static void put_second(char *p, int64_t secs)
{
	int64_t days = secs >= 0 ? secs / 86400 : (secs - 86399) / 86400;
	unsigned rest = (unsigned)(secs - days * 86400);
	int y, m, d;

	date_from_days(days, &y, &m, &d);
	p = put_2(p, (unsigned)y / 100 % 100);
	p = put_2(p, (unsigned)y % 100);
	*p++ = '-';
	p = put_2(p, (unsigned)m);
	*p++ = '-';
	p = put_2(p, (unsigned)d);
	*p++ = 'T';
	p = put_2(p, rest / 3600);
	*p++ = ':';
	p = put_2(p, rest / 60 % 60);
	*p++ = ':';
	p = put_2(p, rest % 60);
	*p = '.';
}

bool uar_time_usable(int64_t wall_us)
{
	static const int64_t year_10000 = 253402300800000000;

	return wall_us >= 0 && wall_us < year_10000;
}

/* Nearly all times are of the second of the one before. */
void uar_time_format(int64_t us, char out[UAR_TIME_TEXT + 1])
{
	static _Thread_local struct {
		int64_t secs;
		char text[SECOND_TEXT + 1];
	} last = { 0, "1970-01-01T00:00:00." };
	int64_t secs = us >= 0 ? us / 1000000 : (us - 999999) / 1000000;
	unsigned micros = (unsigned)(us - secs * 1000000);
	char *p = out + SECOND_TEXT;

	if (secs != last.secs) {
		put_second(last.text, secs);
		last.secs = secs;
	}
	memcpy(out, last.text, SECOND_TEXT);
	p = put_2(p, micros / 10000);
	p = put_2(p, micros / 100 % 100);
	p = put_2(p, micros % 100);
	*p++ = 'Z';
	*p = 0;
}

static bool take_digits(uar_str *s, int width, int lo, int hi, int *out)
{
	int v = 0;

	if (s->n < (size_t)width)
		return false;
	for (int i = 0; i < width; i++) {
		if (s->p[i] < '0' || s->p[i] > '9')
			return false;
		v = v * 10 + (s->p[i] - '0');
	}
	*s = uar_str_from(*s, (size_t)width);
	*out = v;
	return v >= lo && v <= hi;
}

static bool take_char(uar_str *s, char c)
{
	if (s->n == 0 || (s->p[0] != c && s->p[0] != (c | 32)))
		return false;
	*s = uar_str_from(*s, 1);
	return true;
}

static bool take_fraction(uar_str *s, int *out_micros)
{
	int v = 0, digits = 0;

	while (s->n && s->p[0] >= '0' && s->p[0] <= '9' && digits < 9) {
		if (digits < 6)
			v = v * 10 + (s->p[0] - '0');
		digits++;
		*s = uar_str_from(*s, 1);
	}
	for (int i = digits; i < 6; i++)
		v *= 10;
	*out_micros = v;
	return digits > 0;
}

static bool take_offset(uar_str *s, int *out_seconds)
{
	int h, m, sign = 1;

	*out_seconds = 0;
	if (take_char(s, 'Z'))
		return true;
	if (take_char(s, '-'))
		sign = -1;
	else if (!take_char(s, '+'))
		return false;
	if (!take_digits(s, 2, 0, 23, &h) || !take_char(s, ':') || !take_digits(s, 2, 0, 59, &m))
		return false;
	*out_seconds = sign * (h * 3600 + m * 60);
	return true;
}

static int month_days(int y, int m)
{
	static const char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;

	return days[m - 1] + (m == 2 && leap);
}

static bool take_date(uar_str *s, int64_t *out_days)
{
	int y, m, d;

	if (!take_digits(s, 4, 0, 9999, &y) || !take_char(s, '-') ||
	    !take_digits(s, 2, 1, 12, &m) || !take_char(s, '-') || !take_digits(s, 2, 1, 31, &d) ||
	    d > month_days(y, m))
		return false;
	*out_days = days_from_date(y, m, d);
	return true;
}

static bool take_clock(uar_str *s, int *out_seconds, int *out_micros)
{
	int h, m, sec;

	if (!take_digits(s, 2, 0, 23, &h) || !take_char(s, ':') || !take_digits(s, 2, 0, 59, &m) ||
	    !take_char(s, ':') || !take_digits(s, 2, 0, 59, &sec))
		return false;
	*out_seconds = h * 3600 + m * 60 + sec;
	*out_micros = 0;
	return !take_char(s, '.') || take_fraction(s, out_micros);
}

uar_err uar_time_parse(uar_str s, int64_t *out_us)
{
	int64_t days;
	int seconds, micros, offset;

	if (!take_date(&s, &days) || !take_char(&s, 'T') || !take_clock(&s, &seconds, &micros) ||
	    !take_offset(&s, &offset) || s.n)
		return UAR_EINVALID;
	*out_us = (days * 86400 + seconds - offset) * 1000000 + micros;
	return UAR_OK;
}
