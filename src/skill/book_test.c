/* book_test.c - skills of the program, of a directory and of owners. */
#include "skill/book.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

static const struct uar_owner one = { UAR_STR("t"), UAR_STR("w"), UAR_STR("one") };
static const struct uar_owner two = { UAR_STR("t"), UAR_STR("w"), UAR_STR("two") };

static char dir[64];
static int notes;

static void on_note(void *ctx, const struct uar_skill_note *n)
{
	(void)ctx, (void)n;
	notes++;
}

static struct uar_skill_book *open_book(void)
{
	struct uar_skill_book *b = NULL;

	snprintf(dir, sizeof dir, "/tmp/uar-skills-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	notes = 0;
	CHECK_INT(uar_skill_book_create(on_note, NULL, &b), UAR_OK);
	return b;
}

static void write_skill(const char *folder, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", dir, folder);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%s/SKILL.md", dir, folder);
	f = fopen(path, "we");
	REQUIRE(f != NULL);
	fputs(text, f);
	CHECK_INT(fclose(f), 0);
}

static void close_book(struct uar_skill_book *b)
{
	static const char *const folders[] = { "a", "b", "mine", "pdf" };
	char path[160];

	uar_skill_book_destroy(b);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		snprintf(path, sizeof path, "%s/%s/SKILL.md", dir, folders[i]);
		(void)unlink(path);
		snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
		(void)rmdir(path);
	}
	CHECK_INT(rmdir(dir), 0);
}

static void read_dir(struct uar_skill_book *b)
{
	struct uar_error error = { 0 };

	REQUIRE(uar_skill_book_read_dir(b, dir, &error) == UAR_OK);
}

TEST(a_broken_folder_is_told_and_its_last_good_skill_stays, "")
{
	struct uar_skill_book *b = open_book();
	const struct uar_skill_broken *broken;
	struct uar_skill_entry *e;

	write_skill("pdf", "---\nname: pdf\ndescription: Fills forms\n---\nDo.");
	read_dir(b);
	e = uar_skill_book_find(b, &one, UAR_STR("pdf"));
	REQUIRE(e != NULL);
	CHECK_STR(uar_str_c(e->folder), "pdf");
	CHECK(e->updated_us > 0);
	write_skill("pdf", "no front matter");
	read_dir(b);
	read_dir(b);
	broken = uar_skill_book_broken_at(b, 0);
	REQUIRE(broken != NULL);
	CHECK_STR(uar_str_c(broken->skill_id), "pdf");
	CHECK(uar_skill_book_find(b, &one, UAR_STR("pdf")) == e);
	CHECK_INT(notes, 2); /* loaded, and refused once */
	write_skill("pdf", "---\nname: pdf\ndescription: Again\n---\nDo.");
	read_dir(b);
	CHECK(!uar_skill_book_broken_at(b, 0));
	CHECK_STR(uar_skill_book_find(b, &one, UAR_STR("pdf"))->skill.description, "Again");
	close_book(b);
}

TEST(an_id_has_one_source_and_an_owner_sees_its_own, "SKILL-19")
{
	struct uar_skill_book *b = open_book();
	struct uar_error error = { 0 };
	struct uar_skill s;

	write_skill("mine", "---\nname: rag_citations\ndescription: d\n---\nx");
	read_dir(b);
	CHECK(uar_skill_book_broken_at(b, 0) != NULL);
	CHECK_INT(uar_skill_book_may_put(b, &one, UAR_STR("rag_citations"), &error), UAR_EEXISTS);
	CHECK_INT(uar_skill_book_may_put(b, &one, UAR_STR("own"), &error), UAR_OK);
	REQUIRE(uar_skill_read(UAR_STR("{\"skill_id\":\"own\",\"description\":\"d\"}"), &s,
			       &error) == UAR_OK);
	REQUIRE(uar_skill_book_put(b, &one, &s, 1, 5) == UAR_OK);
	CHECK(uar_skill_book_find(b, &one, UAR_STR("own")) != NULL);
	CHECK(uar_skill_book_find(b, &two, UAR_STR("own")) == NULL);
	uar_skill_book_drop(b, &two, UAR_STR("own"));
	CHECK(uar_skill_book_find(b, &one, UAR_STR("own")) != NULL);
	uar_skill_book_drop(b, &one, UAR_STR("own"));
	CHECK(uar_skill_book_find(b, &one, UAR_STR("own")) == NULL);
	close_book(b);
}

TEST(a_full_book_takes_changes_alone, "")
{
	struct uar_skill_book *b = open_book();
	struct uar_error error = { 0 };
	struct uar_skill s;
	uar_err e = UAR_OK;
	char text[96];
	int n = 0;

	for (; !e; n++) {
		snprintf(text, sizeof text, "{\"skill_id\":\"s%d\",\"description\":\"d\"}", n);
		REQUIRE(uar_skill_read(uar_str_c(text), &s, &error) == UAR_OK);
		snprintf(text, sizeof text, "s%d", n);
		e = uar_skill_book_may_put(b, &one, uar_str_c(text), &error);
		if (!e)
			REQUIRE(uar_skill_book_put(b, &one, &s, 1, 5) == UAR_OK);
	}
	uar_skill_fini(&s);
	CHECK_INT(e, UAR_ETOOBIG);
	CHECK(n > 1000);
	CHECK_INT(uar_skill_book_may_put(b, &one, UAR_STR("s0"), &error), UAR_OK);
	CHECK_INT(uar_skill_book_may_put(b, &two, UAR_STR("s0"), &error), UAR_ETOOBIG);
	close_book(b);
}

TEST(what_an_owner_counts_changes_its_ranks_alone, "")
{
	struct uar_skill_book *b = open_book();
	struct uar_skill_request r = { .message = UAR_STR("hello there"), .max_active = 2 };
	static struct uar_skill_matches m;

	write_skill("a", "---\nname: a\ndescription: d\ntriggers: [hello]\n---\nx");
	write_skill("b", "---\nname: b\ndescription: d\ntriggers: [hello]\n---\nx");
	read_dir(b);
	REQUIRE(uar_skill_book_counted(b, &one, UAR_STR("b")) != NULL);
	uar_skill_book_counted(b, &one, UAR_STR("b"))->successes = 3;
	REQUIRE(uar_skill_book_match(b, &one, &r, &m) == UAR_OK);
	CHECK_STR(m.at[0].skill->skill_id, "b");
	CHECK_STR(uar_str_c(uar_skill_entry_of(m.at[0].skill)->folder), "b");
	REQUIRE(uar_skill_book_match(b, &two, &r, &m) == UAR_OK);
	CHECK_STR(m.at[0].skill->skill_id, "a");
	close_book(b);
}
