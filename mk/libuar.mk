# libuar: a runtime inside another program (include/uar/uar.h), and the example that uses it.
#
#   cc -o tasks tasks.c -luar
#
# It is made from the objects of the server; only what the header declares is visible.

UL_ABI := $(shell sed -n 's/^.define UAR_ABI_MAJOR //p' include/uar/uar.h)
UL_SO  := $(BUILD)/libuar.so
UL_PC  := $(BUILD)/uar.pc
UL_PROGRAMS := $(BUILD)/embed/tasks $(BUILD)/embed/driver

.PHONY: libuar install-libuar uninstall-libuar
libuar: $(UL_SO) $(UL_PC) ## build libuar, a runtime inside your program

$(UL_SO): $(LIB_O) src/app/uar.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libuar.so.$(UL_ABI) -Wl,-z,nodelete \
		$(if $(SAN),,-Wl,-z,defs) -Wl,--version-script=src/app/uar.map -o $@ $(LIB_O) $(LDLIBS)
	@ln -sf $(notdir $@) $@.$(UL_ABI)

$(UL_PC): FORCE
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' \
		'Name: uar' 'Description: Universal Agent Runtime as a library' 'Version: $(VERSION)' \
		'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -luar' > $@

# Only the public header, as a program of somebody else would see it.
$(BUILD)/embed/tasks: examples/embed/tasks.c
$(BUILD)/embed/driver: tests/e2e/embed/driver.c
$(UL_PROGRAMS): include/uar/uar.h $(UL_SO)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) -D_GNU_SOURCE -Iinclude $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -L$(BUILD) -luar -Wl,-rpath,$(abspath $(BUILD)) -lpthread

unit threaded programs: $(UL_PROGRAMS)

install: install-libuar
install-libuar: libuar
	install -D -m 644 include/uar/uar.h $(DESTDIR)$(PREFIX)/include/uar/uar.h
	install -D -m 755 $(UL_SO) $(DESTDIR)$(PREFIX)/lib/libuar.so.$(VERSION)
	ln -sf libuar.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libuar.so.$(UL_ABI)
	ln -sf libuar.so.$(UL_ABI) $(DESTDIR)$(PREFIX)/lib/libuar.so
	install -D -m 644 $(UL_PC) $(DESTDIR)$(PREFIX)/lib/pkgconfig/uar.pc

uninstall: uninstall-libuar
uninstall-libuar:
	rm -f $(DESTDIR)$(PREFIX)/include/uar/uar.h $(DESTDIR)$(PREFIX)/lib/pkgconfig/uar.pc \
		$(addprefix $(DESTDIR)$(PREFIX)/lib/libuar.,so so.$(UL_ABI) so.$(VERSION))
	@rmdir $(DESTDIR)$(PREFIX)/include/uar 2>/dev/null || true
