# libagent_api: the Universal Agent API as a C library of its own.
#
#   make agent-api                    build/libagent_api.so, .a and the supervisor
#   AGENT_API_CODEX=0 ...             leave a backend out (also CLAUDE_CODE, ACP)
#
# The library is built from its own objects: position independent, with the
# backends that were asked for, and with nothing of the server in it.

AGENT_API_CODEX       ?= 1
AGENT_API_CLAUDE_CODE ?= 1
AGENT_API_ACP         ?= 1
AGENT_API_LIBEXEC     ?= $(PREFIX)/libexec

AA_ABI   := $(shell sed -n 's/^.define UAA_ABI_MAJOR //p' include/agent_api/agent_api.h)
AA_MINOR := $(shell sed -n 's/^.define UAA_ABI_MINOR //p' include/agent_api/agent_api.h)
AA_DIR   := $(BUILD)/agent_api/$(AGENT_API_CODEX)$(AGENT_API_CLAUDE_CODE)$(AGENT_API_ACP)
AA_BASE  := alloc arena buf clock err rand str
AA_JSON  := json json_keys json_number json_parse jw
AA_C     := $(filter-out %_test.c src/backend/supervisor.c,$(wildcard src/backend/*.c)) \
            $(AA_BASE:%=src/base/%.c) $(AA_JSON:%=src/json/%.c)
AA_O     := $(AA_C:%.c=$(AA_DIR)/%.o)
AA_FLAGS := -fvisibility=hidden -DAGENT_API_CODEX=$(AGENT_API_CODEX) \
            -DAGENT_API_CLAUDE_CODE=$(AGENT_API_CLAUDE_CODE) -DAGENT_API_ACP=$(AGENT_API_ACP)
AA_SO    := $(BUILD)/libagent_api.so
AA_A     := $(BUILD)/libagent_api.a
AA_PC    := $(BUILD)/agent_api.pc
AA_SUP   := $(BUILD)/agent-api-supervisor

.PHONY: agent-api install-agent-api uninstall-agent-api
agent-api: $(AA_SO) $(AA_A) $(AA_PC) ## build libagent_api and its supervisor

$(AA_DIR)/%.o: %.c $(FLAGS)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(AA_FLAGS) -MMD -MP -c -o $@ $<

# One object knows where the library will live: another PREFIX makes it anew.
AA_WHERE := $(AA_DIR)/libexec
$(AA_WHERE): FORCE
	@mkdir -p $(@D)
	@echo '$(AGENT_API_LIBEXEC)' | cmp -s - $@ || echo '$(AGENT_API_LIBEXEC)' > $@
$(AA_DIR)/src/backend/child.o: $(AA_WHERE)
$(AA_DIR)/src/backend/child.o: AA_FLAGS += -DAGENT_API_LIBEXEC='"$(AGENT_API_LIBEXEC)"'

$(AA_DIR)/libagent_api.so: $(AA_O) src/backend/agent_api.map
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libagent_api.so.$(AA_ABI) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -Wl,--version-script=src/backend/agent_api.map \
		-o $@ $(AA_O) -lpthread -ldl -lm

# One object in the archive, so that only uaa_* is visible to whoever links it.
$(AA_DIR)/libagent_api.a: $(AA_O)
	$(call say,AR,$@)
	$(Q)$(LD) -r -o $(@:.a=.o) $^
	$(Q)objcopy --wildcard --keep-global-symbol='uaa_*' $(@:.a=.o)
	@rm -f $@
	$(Q)ar rcs $@ $(@:.a=.o)

# Stamped by configuration: another choice of backends replaces the copies.
$(AA_SO): $(AA_DIR)/libagent_api.so FORCE
	@cmp -s $< $@ || cp $< $@
	@ln -sf $(notdir $@) $@.$(AA_ABI)
$(AA_A): $(AA_DIR)/libagent_api.a FORCE
	@cmp -s $< $@ || cp $< $@
.PHONY: FORCE
FORCE:

$(AA_PC): FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' \
		'abi_version=$(AA_ABI).$(AA_MINOR)' '' \
		'Name: agent_api' 'Description: Universal Agent API' 'Version: $(VERSION)' \
		'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lagent_api' \
		'Libs.private: -lpthread -ldl -lm' > $@

# The supervisor is one small program of its own.
$(AA_SUP): src/backend/supervisor.c src/backend/supervisor.h
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -fsanitize=thread,$(CFLAGS)) -DUAB_SUPERVISOR_MAIN \
		$(filter-out -fsanitize=thread,$(LDFLAGS)) -o $@ $<
agent-api build bench: $(AA_SUP)

# What the unit tests of src/backend start.
AA_FAKE := $(BUILD)/fake-cli
$(AA_FAKE): tests/fake_cli/fake_cli.c
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -D_GNU_SOURCE -O2 -g -std=c17 -Wall -Wextra -Werror -o $@ $<
# Also when a single one of them is built.
$(filter $(BUILD)/tests/src/backend/% $(BUILD)/tests/src/bridge/%,$(TEST_BIN)): | $(AA_SUP) $(AA_FAKE)
$(filter %/backend/build_test,$(TEST_BIN)): | $(AA_SO) $(AA_A) $(AA_PC)
programs: $(AA_SUP) $(AA_FAKE)
unit threaded: $(AA_SUP) $(AA_FAKE) $(AA_SO) $(AA_A) $(AA_PC)

install: install-agent-api
install-agent-api: agent-api
	install -D -m 644 include/agent_api/agent_api.h $(DESTDIR)$(PREFIX)/include/agent_api/agent_api.h
	install -D -m 755 $(AA_SO) $(DESTDIR)$(PREFIX)/lib/libagent_api.so.$(VERSION)
	ln -sf libagent_api.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libagent_api.so.$(AA_ABI)
	ln -sf libagent_api.so.$(AA_ABI) $(DESTDIR)$(PREFIX)/lib/libagent_api.so
	install -D -m 644 $(AA_A) $(DESTDIR)$(PREFIX)/lib/libagent_api.a
	install -D -m 644 $(AA_PC) $(DESTDIR)$(PREFIX)/lib/pkgconfig/agent_api.pc
	install -D -m 755 $(INSTALL_STRIP) $(AA_SUP) $(DESTDIR)$(AGENT_API_LIBEXEC)/agent-api-supervisor

uninstall: uninstall-agent-api
uninstall-agent-api:
	rm -f $(DESTDIR)$(PREFIX)/include/agent_api/agent_api.h $(DESTDIR)$(PREFIX)/lib/pkgconfig/agent_api.pc \
		$(addprefix $(DESTDIR)$(PREFIX)/lib/libagent_api.,a so so.$(AA_ABI) so.$(VERSION)) \
		$(DESTDIR)$(AGENT_API_LIBEXEC)/agent-api-supervisor
	@rmdir $(DESTDIR)$(PREFIX)/include/agent_api 2>/dev/null || true
