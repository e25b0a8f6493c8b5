/* banned.h - functions that no file may call; included by every compilation.
 * gcc alone enforces it: clang takes the attribute on first declarations only. */
#ifndef UAR_BASE_BANNED_H
#define UAR_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef __clang__
#define UAR_BANNED(WHY) __attribute__((error("banned: " WHY)))

char *strcpy(char *, const char *) UAR_BANNED("use uar_buf or memcpy");
char *strcat(char *, const char *) UAR_BANNED("use uar_buf");
char *strncpy(char *, const char *, size_t) UAR_BANNED("use memcpy");
char *strncat(char *, const char *, size_t) UAR_BANNED("use uar_buf");
int sprintf(char *, const char *, ...) UAR_BANNED("use snprintf or uar_buf_printf");
char *strtok(char *, const char *) UAR_BANNED("use uar_str_cut");
int atoi(const char *) UAR_BANNED("use uar_str_u64");
long atol(const char *) UAR_BANNED("use uar_str_u64");
double atof(const char *) UAR_BANNED("use the JSON reader");
struct tm *gmtime(const time_t *) UAR_BANNED("use uar_time_format");
struct tm *localtime(const time_t *) UAR_BANNED("use uar_time_format");
int rand(void) UAR_BANNED("use uar_rand");
int system(const char *) UAR_BANNED("no shell");
FILE *popen(const char *, const char *) UAR_BANNED("no shell");
char *mktemp(char *) UAR_BANNED("use mkstemp");

#endif
#endif
