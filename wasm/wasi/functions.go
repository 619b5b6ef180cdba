package wasi

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/wasm/guestfs"
)

// The import modules that a guest names.
const (
	// ModuleName is that of preview1.
	ModuleName = "wasi_snapshot_preview1"
	// OutgoingModule is that of what WASI has no word for: requests to the network.
	OutgoingModule = "openskill_v1"
)

// Function is one row of the published import table.
type Function struct {
	Module, Name    string
	Params, Results []api.ValueType
}

type hostFunction struct {
	module string
	name   string
	params string // 'i' for i32, 'I' for i64
	call   func(w *World, p []uint64) guestfs.Errno
}

// hostFunctions is preview1, in the order of the specification, and what stands
// beside it. All but proc_exit return an error number.
func hostFunctions() []hostFunction {
	return []hostFunction{
		{ModuleName, "args_get", "ii", (*World).argsGet},
		{ModuleName, "args_sizes_get", "ii", (*World).argsSizesGet},
		{ModuleName, "environ_get", "ii", (*World).environGet},
		{ModuleName, "environ_sizes_get", "ii", (*World).environSizesGet},
		{ModuleName, "clock_res_get", "ii", (*World).clockResGet},
		{ModuleName, "clock_time_get", "iIi", (*World).clockTimeGet},
		{ModuleName, "fd_advise", "iIIi", (*World).fdAdvise},
		{ModuleName, "fd_allocate", "iII", (*World).fdAllocate},
		{ModuleName, "fd_close", "i", (*World).fdClose},
		{ModuleName, "fd_datasync", "i", (*World).fdSync},
		{ModuleName, "fd_fdstat_get", "ii", (*World).fdFdstatGet},
		{ModuleName, "fd_fdstat_set_flags", "ii", (*World).fdFdstatSetFlags},
		{ModuleName, "fd_fdstat_set_rights", "iII", (*World).fdFdstatSetRights},
		{ModuleName, "fd_filestat_get", "ii", (*World).fdFilestatGet},
		{ModuleName, "fd_filestat_set_size", "iI", (*World).fdFilestatSetSize},
		{ModuleName, "fd_filestat_set_times", "iIIi", (*World).fdFilestatSetTimes},
		{ModuleName, "fd_pread", "iiiIi", (*World).fdPread},
		{ModuleName, "fd_prestat_get", "ii", (*World).fdPrestatGet},
		{ModuleName, "fd_prestat_dir_name", "iii", (*World).fdPrestatDirName},
		{ModuleName, "fd_pwrite", "iiiIi", (*World).fdPwrite},
		{ModuleName, "fd_read", "iiii", (*World).fdRead},
		{ModuleName, "fd_readdir", "iiiIi", (*World).fdReaddir},
		{ModuleName, "fd_renumber", "ii", (*World).fdRenumber},
		{ModuleName, "fd_seek", "iIii", (*World).fdSeek},
		{ModuleName, "fd_sync", "i", (*World).fdSync},
		{ModuleName, "fd_tell", "ii", (*World).fdTell},
		{ModuleName, "fd_write", "iiii", (*World).fdWrite},
		{ModuleName, "path_create_directory", "iii", (*World).pathCreateDirectory},
		{ModuleName, "path_filestat_get", "iiiii", (*World).pathFilestatGet},
		{ModuleName, "path_filestat_set_times", "iiiiIIi", (*World).pathFilestatSetTimes},
		{ModuleName, "path_link", "iiiiiii", (*World).pathLink},
		{ModuleName, "path_open", "iiiiiIIii", (*World).pathOpen},
		{ModuleName, "path_readlink", "iiiiii", (*World).pathReadlink},
		{ModuleName, "path_remove_directory", "iii", (*World).pathRemoveDirectory},
		{ModuleName, "path_rename", "iiiiii", (*World).pathRename},
		{ModuleName, "path_symlink", "iiiii", (*World).pathSymlink},
		{ModuleName, "path_unlink_file", "iii", (*World).pathUnlinkFile},
		{ModuleName, "poll_oneoff", "iiii", (*World).pollOneoff},
		{ModuleName, "proc_exit", "i", (*World).procExit},
		{ModuleName, "proc_raise", "i", (*World).procRaise},
		{ModuleName, "sched_yield", "", (*World).schedYield},
		{ModuleName, "random_get", "ii", (*World).randomGet},
		{ModuleName, "sock_accept", "iii", (*World).sock},
		{ModuleName, "sock_recv", "iiiiii", (*World).sock},
		{ModuleName, "sock_send", "iiiii", (*World).sock},
		{ModuleName, "sock_shutdown", "ii", (*World).sock},

		{OutgoingModule, "http_request", "iii", (*World).httpRequest},
		{OutgoingModule, "http_read", "iii", (*World).httpRead},
	}
}

func valueTypes(letters string) (types []api.ValueType) {
	for _, c := range letters {
		if c == 'I' {
			types = append(types, api.ValueTypeI64)
		} else {
			types = append(types, api.ValueTypeI32)
		}
	}
	return types
}

func (f *hostFunction) types() (params, results []api.ValueType) {
	params = valueTypes(f.params)
	if f.name != "proc_exit" {
		results = []api.ValueType{api.ValueTypeI32}
	}
	return params, results
}

// Functions is the import table that [Instantiate] provides: what a module may
// import, and with which types.
func Functions() []Function {
	var out []Function
	for _, f := range hostFunctions() {
		params, results := f.types()
		out = append(out, Function{f.module, f.name, params, results})
	}
	for _, f := range pluginFunctions() {
		params, results := f.types()
		out = append(out, Function{PluginModule, f.name, params, results})
	}
	return out
}

// Modules are those that a guest may import of.
func Modules() []string { return []string{ModuleName, OutgoingModule, PluginModule} }

// Instantiate defines the host modules in a runtime, once for all its runs. What it
// gives closes them.
func Instantiate(ctx context.Context, r wazero.Runtime) (api.Closer, error) {
	var made modules
	for _, name := range Modules() {
		builder := r.NewHostModuleBuilder(name)
		for _, f := range pluginFunctions() {
			if name != PluginModule {
				break
			}
			params, results := f.types()
			builder = builder.NewFunctionBuilder().WithGoModuleFunction(pluginGo(f), params, results).WithName(f.name).Export(f.name)
		}
		for _, f := range hostFunctions() {
			if f.module != name {
				continue
			}
			params, results := f.types()
			builder = builder.NewFunctionBuilder().
				WithGoModuleFunction(goFunction(f.call), params, results).
				WithName(f.name).
				Export(f.name)
		}
		m, err := builder.Instantiate(ctx)
		if err != nil {
			return nil, errors.Join(err, made.Close(ctx))
		}
		made = append(made, m)
	}
	return made, nil
}

type modules []api.Closer

func (m modules) Close(ctx context.Context) error {
	var errs []error
	for _, c := range m {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

func goFunction(call func(w *World, p []uint64) guestfs.Errno) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		w, ok := ctx.Value(worldKey{}).(*World)
		if !ok {
			panic(ErrNoWorld)
		}
		w.enter(ctx, mod)
		w.charge(costCall)
		stack[0] = uint64(call(w, stack))
	}
}
