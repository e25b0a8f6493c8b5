/* command_test.c - what a command line says. */
#include "test.h"

#include "sandbox/command.h"

static struct uar_command_line read_line(struct uar_arena *arena, const char *text)
{
	struct uar_command_line line;

	CHECK(uar_command_read_line(uar_str_c(text), arena, &line) == UAR_OK);
	return line;
}

TEST(a_line_is_split_into_its_commands, "")
{
	struct uar_arena arena;
	struct uar_command_line l;

	uar_arena_init(&arena, 0);
	l = read_line(&arena, "a 'b c' && d \"e;f\" | g 2>&1; h & i\\ j");
	CHECK_INT(l.count, 5);
	CHECK(uar_str_is(l.parts[0], "a b c"));
	CHECK(uar_str_is(l.parts[1], "d e;f"));
	CHECK(uar_str_is(l.parts[2], "g 2>&1"));
	CHECK(uar_str_is(l.parts[4], "i j"));
	CHECK(!l.destructive && !l.complex);
	CHECK(read_line(&arena, "echo $(rm x)").complex);
	CHECK(read_line(&arena, "echo \"`date`\"").complex);
	CHECK(!read_line(&arena, "echo '$(rm x)'").complex);
	CHECK_INT(read_line(&arena, "").count, 0);
	CHECK_INT(read_line(&arena, "'unfinished").count, 1);
	uar_arena_fini(&arena);
}

TEST(what_destroys_is_marked, "")
{
	static const char *const destroys[] = {
		"rm -rf x",	    "sudo rm -r x",	"A=1 rm --recursive x", "git push --force",
		"git push -f o m",  "git reset --hard", "git clean -fdx",	"dd if=a of=b",
		"mkfs.ext4 /dev/x", "/bin/rm -fr x",	"sh -c 'rm -rf x'",	"a && rm -rf x",
		"find . -delete",   "chmod -R 777 .",	"xargs rm -rf",		"git branch -D x",
	};
	static const char *const harmless[] = {
		"rm x",	      "git push", "echo 'rm -rf x'", "ls",
		"git status", "cat dd",	  "find . -name x",
	};
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	for (size_t i = 0; i < ARRAY_LEN(destroys); i++)
		CHECK(read_line(&arena, destroys[i]).destructive);
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		CHECK(!read_line(&arena, harmless[i]).destructive);
	uar_arena_fini(&arena);
}

TEST(summaries_hide_secrets, "")
{
	struct uar_arena arena;
	struct uar_command_line l;

	uar_arena_init(&arena, 0);
	l = read_line(&arena, "curl --token abc -H 'Authorization: Bearer abc' API_KEY=abc x");
	CHECK(uar_str_is(l.summary, "curl --token *** -H Authorization: *** API_KEY=*** x"));
	CHECK(uar_str_eq(l.parts[0], l.summary));
	uar_arena_fini(&arena);
}
