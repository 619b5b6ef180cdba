/* libpython asks for dynamic loading, which WASI has not. These say so, as wasi-libc's
   own libdl does; zig's C library comes without one. */
void *dlopen(const char *name, int mode) { (void)name; (void)mode; return 0; }
void *dlsym(void *handle, const char *name) { (void)handle; (void)name; return 0; }
char *dlerror(void) { return "there is no dynamic loading in WASI"; }
int dlclose(void *handle) { (void)handle; return -1; }
