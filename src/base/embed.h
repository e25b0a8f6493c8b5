/* embed.h - a file as part of the program, copied by the assembler as it is.
 *
 *	UAR_EMBED(uar_page_html, "web/dist/index.html");
 *	uar_str page = UAR_EMBEDDED(uar_page_html);
 *
 * The path begins at the root of the tree; the Makefile says which object depends on which
 * files. Behind the bytes stands a NUL, so a text is a C string as well. */
#ifndef UAR_BASE_EMBED_H
#define UAR_BASE_EMBED_H

#include "base/str.h"

#define UAR_EMBED(SYMBOL, PATH)                                                                    \
	__asm__(".pushsection .rodata\n"                                                           \
		".globl " #SYMBOL "\n"                                                             \
		".hidden " #SYMBOL "\n" #SYMBOL ":\n"                                              \
		".incbin \"" PATH "\"\n"                                                           \
		".globl " #SYMBOL "_end\n"                                                         \
		".hidden " #SYMBOL "_end\n" #SYMBOL "_end:\n"                                      \
		".byte 0\n"                                                                        \
		".popsection\n");                                                                  \
	extern const char SYMBOL[] __attribute__((visibility("hidden")));                          \
	extern const char SYMBOL##_end[] __attribute__((visibility("hidden")))

#define UAR_EMBEDDED(SYMBOL) uar_str_n(SYMBOL, (size_t)(SYMBOL##_end - SYMBOL))

#endif
