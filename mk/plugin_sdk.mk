# The C side of plugins: libuar_plugin.a for programs, and the plugin that the tests use.
#
#   cc -o words words.c -luar_plugin -lpthread     a program
#   cc -shared -fPIC -o words.so words.c           a library

PS_A    := $(BUILD)/libuar_plugin.a
PS_O    := $(BUILD)/obj/sdk/c/uar_plugin.o
PS_PC   := $(BUILD)/uar_plugin.pc
PS_H    := include/uar/plugin.h
PS_TEST := $(BUILD)/sdk/conform $(BUILD)/sdk/conform.so
PS_TEST_C := tests/e2e/sdk/c/main.c
PS_FLAGS := $(filter-out -std=c17,$(CFLAGS)) -std=c11

.PHONY: plugin-sdk install-plugin-sdk uninstall-plugin-sdk
plugin-sdk: $(PS_A) $(PS_PC) ## build libuar_plugin, for plugins in C

$(PS_O): sdk/c/uar_plugin.c $(wildcard sdk/c/*.h) $(PS_H)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -Iinclude $(PS_FLAGS) -c -o $@ $<

$(PS_A): $(PS_O)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(PS_PC): FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' \
		'Name: uar_plugin' 'Description: plugins for UAR' 'Version: $(VERSION)' \
		'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -luar_plugin -lpthread -lm' > $@

$(BUILD)/sdk/conform: $(PS_TEST_C) $(PS_A) $(PS_H)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -D_GNU_SOURCE -Iinclude $(PS_FLAGS) $(LDFLAGS) -o $@ $< $(PS_A) -lpthread -lm

$(BUILD)/sdk/conform.so: $(PS_TEST_C) $(PS_H)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -D_GNU_SOURCE -Iinclude $(PS_FLAGS) $(LDFLAGS) -shared -o $@ $<

$(filter $(BUILD)/tests/src/plugin/%,$(TEST_BIN)): | $(PS_TEST)
unit threaded programs: $(PS_TEST)

install: install-plugin-sdk
install-plugin-sdk: plugin-sdk
	install -D -m 644 $(PS_H) $(DESTDIR)$(PREFIX)/include/uar/plugin.h
	install -D -m 644 $(PS_A) $(DESTDIR)$(PREFIX)/lib/libuar_plugin.a
	install -D -m 644 $(PS_PC) $(DESTDIR)$(PREFIX)/lib/pkgconfig/uar_plugin.pc

uninstall: uninstall-plugin-sdk
uninstall-plugin-sdk:
	rm -f $(DESTDIR)$(PREFIX)/include/uar/plugin.h $(DESTDIR)$(PREFIX)/lib/libuar_plugin.a \
		$(DESTDIR)$(PREFIX)/lib/pkgconfig/uar_plugin.pc
	@rmdir $(DESTDIR)$(PREFIX)/include/uar 2>/dev/null || true
