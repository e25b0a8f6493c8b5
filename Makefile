# UAR builds with GNU make alone. `make run` and `make test` are all a user needs;
# `make help` lists the rest.
#
#   SAN=asan|tsan   sanitizer build with clang, in its own directory
#   CC=clang        another compiler (with another BUILD nothing is built anew)
#
# Without CC the compiler is called through ccache where that is installed: its cache
# is outside the clone and shared by all clones.

SAN    ?=
BUILD  ?= build$(if $(SAN),/$(SAN))
CCACHE := $(shell d=$$(ccache -k cache_dir 2>/dev/null) && mkdir -p "$$d" 2>/dev/null && test -w "$$d" && echo ccache)
CC     := $(strip $(if $(filter default,$(origin CC)),$(CCACHE) $(if $(SAN),clang,gcc),$(CC)))
PREFIX ?= /usr/local

VERSION := 0.1.0

# V=1 shows the commands.
Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2))

CPPFLAGS += -D_GNU_SOURCE -DUAR_VERSION='"$(VERSION)"' -Isrc -Iinclude -I$(BUILD)/gen \
            -include src/base/banned.h
CFLAGS   ?= -O2 -g
CFLAGS   += -std=c17 -Wall -Wextra -Werror -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes \
            -Wundef -Wformat=2 -fno-strict-aliasing -fstack-protector-strong \
            -ffile-prefix-map=$(CURDIR)=.
# The same objects make the server and the library that tests are linked with, which
# shows them everything. What is installed as a library hides its symbols itself.
CFLAGS   += -fPIC -fno-semantic-interposition
LDFLAGS  += -Wl,-z,relro,-z,now
LDLIBS   += -luv -lsqlite3 -lcrypto -lyaml -lz -lpthread -ldl -lm

SAN_FLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SAN_FLAGS_tsan := -fsanitize=thread
SAN_FLAGS_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
CFLAGS  += $(SAN_FLAGS_$(SAN))
LDFLAGS += $(SAN_FLAGS_$(SAN))

# --- what is built ---------------------------------------------------------
ALL_C    := $(shell find src -name '*.c' | sort)
TEST_C   := $(filter %_test.c,$(ALL_C)) $(shell find tests/sim -name '*_test.c' 2>/dev/null | sort)
MAIN_C   := src/app/main.c
LIB_C    := $(filter-out %_test.c $(MAIN_C),$(ALL_C))
LIB_O    := $(LIB_C:%.c=$(BUILD)/obj/%.o)
GEN_S    := $(shell find src -name '*.S' | sort)
LIB_O    += $(GEN_S:%.S=$(BUILD)/obj/%.o)
LIB      := $(BUILD)/libuar.a
UAR      := $(BUILD)/uar
TESTLIB_C := $(shell find tests/lib -name '*.c' | sort)
TESTLIB_O := $(TESTLIB_C:%.c=$(BUILD)/obj/%.o)
TESTLIB  := $(BUILD)/libuar_test.so
TEST_BIN := $(TEST_C:%.c=$(BUILD)/tests/%)
BENCH_C  := $(wildcard bench/*.c)
BENCH_BIN := $(BENCH_C:bench/%.c=$(BUILD)/bench/%)
BENCHLIB_O := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard bench/lib/*.c))
FUZZ_C   := $(wildcard tests/fuzz/*_fuzz.c)


.PHONY: all build run test quick unit threaded programs e2e e2e-plain bench bench-page fuzz asan tsan lint format check-generated generate \
        install uninstall deb clean help deps deps-test torture size conformance mutate web web-check web-dev FORCE
.DEFAULT_GOAL := build
.SECONDARY:

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 18

build: $(UAR) ## build build/uar
all: build

run: deps ## install what is missing, build, start UAR and print the link
	@$(MAKE) --no-print-directory -j$$(nproc) build
	@exec $(UAR) serve --fixtures-dir fixtures/streams

deps: ## install the packages that a build needs (as root; otherwise it names them)
	@tools/deps build
deps-test:
	@tools/deps build test

ifneq ($(wildcard $(MAIN_C)),)
$(UAR): $(BUILD)/obj/$(MAIN_C:.c=.o) $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
else
$(UAR): $(LIB)
endif

$(LIB): $(LIB_O)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcsT $@ $^

# Tests are linked with a library that is loaded at run time: a changed file makes this
# one anew and no test program.
$(TESTLIB): $(LIB_O) $(TESTLIB_O)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ $(LDLIBS) -ljansson

# Other flags make every object anew; ccache in front of the compiler changes none.
FLAGS     := $(BUILD)/.flags
FLAGS_NOW := $(filter-out ccache,$(CC)) $(CPPFLAGS) $(CFLAGS)
$(FLAGS): FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(FLAGS_NOW))' > $@

# Looked at once: what is missing is named before a compiler stumbles over the first of it.
HEADERS := $(BUILD)/.headers
$(HEADERS):
	@mkdir -p $(@D)
	@printf '#include <%s>\n' uv.h sqlite3.h curl/curl.h openssl/evp.h yaml.h zlib.h | \
		$(CC) $(CPPFLAGS) -x c -E - >/dev/null 2>$@.why || \
		{ tools/deps -n build && cat $@.why >&2; rm -f $@.why; exit 1; }
	@rm -f $@.why && touch $@

$(BUILD)/obj/%.o: %.c $(FLAGS) | $(HEADERS)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(if $(filter tests/% %_test.c,$<),-Itests/lib) \
		$(if $(filter bench/%,$<),-Ibench) -MMD -MP -c -o $@ $<

$(BUILD)/obj/%.o: %.S
	@mkdir -p $(@D)
	$(call say,AS,$<)
	$(Q)$(CC) $(CPPFLAGS) -MMD -MP -c -o $@ $<

# The page (web/dist, see web/README.md), compressed: the same bytes each time, so that builds can be
# compared; and the list of its files, whose names carry a hash.
PAGE_VIEWS := index.html index-1.html index-2.html index-3.html
PAGE_FILES := $(sort $(patsubst web/dist/%,%,$(wildcard web/dist/page/*)))
PAGE_GZ    := $(patsubst %,$(BUILD)/web/%.gz,$(PAGE_VIEWS) $(PAGE_FILES))
PAGE_DEF   := $(BUILD)/gen/gate/page_files.def
$(BUILD)/web/%.gz: web/dist/%
	@mkdir -p $(@D)
	$(call say,GZIP,$<)
	$(Q)gzip -9nc $< > $@
page_name = $(subst /,_,$(subst .,_,$(subst -,_,$(1))))
page_type = $(if $(filter %.js,$(1)),SCRIPT,$(if $(filter %.css,$(1)),STYLE,$(if $(filter %.html,$(1)),HTML,"application/octet-stream")))
PAGE_ROWS := $(foreach f,$(PAGE_VIEWS),'VIEW($(call page_name,$(f)), "$(f)")') \
             $(foreach f,$(PAGE_FILES),'F($(call page_name,$(f)), "$(f)", $(call page_type,$(f)))')
$(PAGE_DEF): FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(PAGE_ROWS) | cmp -s - $@ || printf '%s\n' $(PAGE_ROWS) > $@

# These objects have files inside them, which no compiler's dependency file says.
$(BUILD)/obj/src/event/schemas.o: $(wildcard src/event/schemas/*.json)
$(BUILD)/obj/src/gate/page.o: $(PAGE_GZ) $(PAGE_DEF)
$(BUILD)/obj/src/gate/page.o: CPPFLAGS += -DUAR_PAGE_GZ='"$(BUILD)/web"'
$(BUILD)/obj/src/plugin/manifest.o: src/plugin/plugin.schema.json
# Python leaves a folder beside what it runs, which is none of ours.
$(BUILD)/obj/src/app/author_files.o: $(filter-out %/__pycache__,$(wildcard sdk/*/* sdk/templates/*/* include/uar/*))
$(BUILD)/obj/src/agent/definition.o: src/agent/agent.schema.json
$(BUILD)/obj/src/app/verbs_agent.o: sdk/templates/agent.yaml
$(BUILD)/obj/src/skill/skill.o: src/skill/skill.schema.json $(wildcard src/skill/builtin/*.md)

$(BUILD)/tests/%: $(BUILD)/obj/%.o | $(TESTLIB)
	@mkdir -p $(@D)
	$(call say,TEST,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $< $(TESTLIB) -Wl,-rpath,$(abspath $(BUILD)) $(LDLIBS) -ljansson

$(BUILD)/bench/%: bench/%.c $(BENCHLIB_O) $(LIB)
	@mkdir -p $(@D)
	$(call say,BENCH,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Ibench -MMD -MP $(LDFLAGS) -o $@ $< $(BENCHLIB_O) $(LIB) $(LDLIBS)

# What the conformance suite of MCP starts as the client that it judges.
MCP_CLIENT := $(BUILD)/mcp-client
$(MCP_CLIENT): tests/mcp_client/mcp_client.c $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(LIB) $(LDLIBS) -lcurl
programs: $(MCP_CLIENT)

include mk/agent_api.mk
include mk/libuar.mk
include mk/plugin_sdk.mk

# --- tests -----------------------------------------------------------------
test: deps-test ## everything CI runs; closing line "N passed, N failed"
	@tools/test-all

quick: ## build, and the tests of what has changed since main (tools/quick)
	@BUILD=$(BUILD) tools/quick

# Some wait for children or for the disk: one more at a time than there are cores.
UNIT_LONG := $(filter %/backend/real_test %/backend/process_test %/backend/supervisor_test %/fault_test %/verify_test %_sim_test,$(TEST_BIN))
RUN_UNIT  := BUILD=$(BUILD) TEST_JOBS=$${TEST_JOBS:-$$(($$(nproc) + 1))} tools/run-tests
unit: $(TEST_BIN) ## unit tests and the simulation, in this build (SAN= works)
	@$(RUN_UNIT) $(UNIT_LONG) $(filter-out $(UNIT_LONG),$(TEST_BIN))

THREADED := backend bridge event http loop model plugin store
THREADED_BIN := $(filter $(THREADED:%=$(BUILD)/tests/src/%/%),$(TEST_BIN))
threaded: $(THREADED_BIN) ## unit tests of the rooms with threads (SAN=tsan)
	@$(RUN_UNIT) $(filter $(UNIT_LONG),$(THREADED_BIN)) $(filter-out $(UNIT_LONG),$(THREADED_BIN))

# They wait more than they compute: two more at a time than there are cores. Those that
# take long begin first. What is installed, measured, not ours, or needs all of the address
# space is tried in the plain build alone: a sanitizer would see nothing new there.
E2E_OF    = $(patsubst %,tests/e2e/%_test.py,$(1))
E2E_PLAIN_LONG := $(call E2E_OF,page_screens page_agents page_points memory page_render page_knowledge page_boot page_ask page_tasks)
E2E_PLAIN := $(E2E_PLAIN_LONG) $(sort $(filter-out $(E2E_PLAIN_LONG),$(wildcard tests/e2e/page_*_test.py) \
             $(call E2E_OF,real_agents mcp_agents install load)))
# All kills happen in the plain build, some of them also under ASan.
E2E_BOTH  := $(call E2E_OF,kill9)
E2E_LONG  := $(call E2E_OF,kill9 agui storage exec events openai a2a_peers a2ui kb_tools models mcp_ask mcp_conformance backend plugin_rules sdk \
             routing variants a2a provider tools plugin_cli)
E2E_ALL   := $(wildcard tests/e2e/*_test.py)
E2E       := $(if $(SAN),,$(E2E_PLAIN)) $(E2E_LONG) $(sort $(filter-out $(E2E_LONG) $(E2E_PLAIN),$(E2E_ALL)))
RUN_E2E   := BUILD=$(BUILD) TEST_JOBS=$${TEST_JOBS:-$$(($$(nproc) + 2))} tools/run-tests
programs: $(UAR) $(if $(SAN),,$(addprefix $(BUILD)/bench/,load limit_short)) ## the server and what end-to-end tests start besides it
e2e: programs ## tests through the real server's doors, in this build (SAN= works)
	@$(RUN_E2E) $(E2E)
TOOLS_TEST := tests/tools/tools_test.py
e2e-plain: programs ## those of them that a sanitizer's build leaves out, and the tests of the tools
	@$(RUN_E2E) $(E2E_BOTH) $(E2E_PLAIN) $(TOOLS_TEST)

asan: ## unit and e2e tests under ASan + UBSan
	@$(MAKE) --no-print-directory SAN=asan unit e2e
tsan: ## the threaded parts under TSan
	@$(MAKE) --no-print-directory SAN=tsan threaded

# Ten times what the tests run by themselves (1,000 of each).
KILLS ?= 10000
SEEDS ?= 10000
SIM_BIN := $(filter $(BUILD)/tests/tests/sim/%,$(TEST_BIN))
torture: programs $(SIM_BIN) ## KILLS (10,000) kill -9 moments and SEEDS (10,000) of the simulation; half an hour
	@BUILD=$(BUILD) UAR_TEST_KILLS=$(KILLS) UAR_TEST_CONTROL_KILLS=$$(($(KILLS) / 25)) \
		UAR_TEST_AGENT_KILLS=$$(($(KILLS) / 33)) UAR_TEST_SEEDS=$(SEEDS) \
		UAR_TEST_KB_KILLS=$$(($(KILLS) / 100)) UAR_TEST_MCP_KILLS=$$(($(KILLS) / 100)) TEST_PATIENCE=60 tools/run-tests tests/e2e/kill9_test.py tests/e2e/control_kill9_test.py tests/e2e/agent_kill9_test.py tests/e2e/kb_test.py tests/e2e/mcp_hostile_test.py $(SIM_BIN)

bench: $(UAR) $(BENCH_BIN) ## measure against the raw limits of this machine
	@BUILD=$(BUILD) bench/run
bench-page: $(UAR) ## measure the studio in a browser: first paint, long tasks, large runs, heap
	@BUILD=$(BUILD) bench/page

$(BUILD)/bin/%_fuzz: tests/fuzz/%_fuzz.c $(LIB)
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-missing-prototypes -fsanitize=fuzzer -Itests/lib -MMD -MP $(LDFLAGS) \
		-o $@ $< $(LIB) $(LDLIBS) -ljansson

FUZZ_SECONDS ?= 600
fuzz: ## run every fuzz target for FUZZ_SECONDS (clang, libFuzzer)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz $(FUZZ_C)

mutate: ## break one promise at a time and see that a test notices; tools/mutate NAME for one
	@tools/mutate

# --- the page; only these need Node.js and npm -----------------------------
web: ## build web/dist from web/src (commit both)
	@tools/web build
web-check: ## is web/dist what web/src makes?
	@tools/web check
web-dev: ## serve the page with hot reload; UAR_URL is the running server (http://127.0.0.1:8080)
	@tools/web dev

# --- rules of the house ----------------------------------------------------
lint: $(LIB) ## layers, sizes, format, generated files, static analysis
	@tools/lint

format: ## let clang-format decide
	@find src tests bench include sdk -name '*.[ch]' 2>/dev/null | xargs clang-format -i

generate: ## rewrite the files that derive from tables
	@tools/generate
conformance: ## rewrite docs/CONFORMANCE.md from the tests and their results
	@tools/conformance
size: ## size report of functions and files
	@tools/check-sizes --report

# INSTALL_STRIP= keeps the symbols of installed programs.
INSTALL_STRIP ?= -s
install: build ## install to PREFIX (default /usr/local), DESTDIR respected
	install -D -m 755 $(INSTALL_STRIP) $(UAR) $(DESTDIR)$(PREFIX)/bin/uar
	install -D -m 644 docs/uar.1 $(DESTDIR)$(PREFIX)/share/man/man1/uar.1
uninstall: ## remove what install has put there, with the same PREFIX and DESTDIR
	rm -f $(DESTDIR)$(PREFIX)/bin/uar $(DESTDIR)$(PREFIX)/share/man/man1/uar.1

deb: build libuar agent-api plugin-sdk ## Debian packages in build/: uar, libuar1, libagent-api1, uar-dev
	@BUILD=$(BUILD) VERSION=$(VERSION) MAKE='$(MAKE)' tools/deb

clean: ## remove everything that was built
	rm -rf build

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
