package wasi

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"openskill/wasm/guestfs"
)

// ModuleName is the import module that a guest names.
const ModuleName = "wasi_snapshot_preview1"

// Function is one row of the published import table.
type Function struct {
	Name            string
	Params, Results []api.ValueType
}

type hostFunction struct {
	name   string
	params string // 'i' for i32, 'I' for i64
	call   func(w *World, p []uint64) guestfs.Errno
}

// hostFunctions is preview1, in the order of the specification. All but proc_exit
// return an error number.
func hostFunctions() []hostFunction {
	return []hostFunction{
		{"args_get", "ii", (*World).argsGet},
		{"args_sizes_get", "ii", (*World).argsSizesGet},
		{"environ_get", "ii", (*World).environGet},
		{"environ_sizes_get", "ii", (*World).environSizesGet},
		{"clock_res_get", "ii", (*World).clockResGet},
		{"clock_time_get", "iIi", (*World).clockTimeGet},
		{"fd_advise", "iIIi", (*World).fdAdvise},
		{"fd_allocate", "iII", (*World).fdAllocate},
		{"fd_close", "i", (*World).fdClose},
		{"fd_datasync", "i", (*World).fdSync},
		{"fd_fdstat_get", "ii", (*World).fdFdstatGet},
		{"fd_fdstat_set_flags", "ii", (*World).fdFdstatSetFlags},
		{"fd_fdstat_set_rights", "iII", (*World).fdFdstatSetRights},
		{"fd_filestat_get", "ii", (*World).fdFilestatGet},
		{"fd_filestat_set_size", "iI", (*World).fdFilestatSetSize},
		{"fd_filestat_set_times", "iIIi", (*World).fdFilestatSetTimes},
		{"fd_pread", "iiiIi", (*World).fdPread},
		{"fd_prestat_get", "ii", (*World).fdPrestatGet},
		{"fd_prestat_dir_name", "iii", (*World).fdPrestatDirName},
		{"fd_pwrite", "iiiIi", (*World).fdPwrite},
		{"fd_read", "iiii", (*World).fdRead},
		{"fd_readdir", "iiiIi", (*World).fdReaddir},
		{"fd_renumber", "ii", (*World).fdRenumber},
		{"fd_seek", "iIii", (*World).fdSeek},
		{"fd_sync", "i", (*World).fdSync},
		{"fd_tell", "ii", (*World).fdTell},
		{"fd_write", "iiii", (*World).fdWrite},
		{"path_create_directory", "iii", (*World).pathCreateDirectory},
		{"path_filestat_get", "iiiii", (*World).pathFilestatGet},
		{"path_filestat_set_times", "iiiiIIi", (*World).pathFilestatSetTimes},
		{"path_link", "iiiiiii", (*World).pathLink},
		{"path_open", "iiiiiIIii", (*World).pathOpen},
		{"path_readlink", "iiiiii", (*World).pathReadlink},
		{"path_remove_directory", "iii", (*World).pathRemoveDirectory},
		{"path_rename", "iiiiii", (*World).pathRename},
		{"path_symlink", "iiiii", (*World).pathSymlink},
		{"path_unlink_file", "iii", (*World).pathUnlinkFile},
		{"poll_oneoff", "iiii", (*World).pollOneoff},
		{"proc_exit", "i", (*World).procExit},
		{"proc_raise", "i", (*World).procRaise},
		{"sched_yield", "", (*World).schedYield},
		{"random_get", "ii", (*World).randomGet},
		{"sock_accept", "iii", (*World).sock},
		{"sock_recv", "iiiiii", (*World).sock},
		{"sock_send", "iiiii", (*World).sock},
		{"sock_shutdown", "ii", (*World).sock},
	}
}

func (f *hostFunction) types() (params, results []api.ValueType) {
	for _, c := range f.params {
		if c == 'I' {
			params = append(params, api.ValueTypeI64)
		} else {
			params = append(params, api.ValueTypeI32)
		}
	}
	if f.name != "proc_exit" {
		results = []api.ValueType{api.ValueTypeI32}
	}
	return params, results
}

// Functions is the import table that [Instantiate] provides: what a module may
// import from [ModuleName], and with which types.
func Functions() []Function {
	all := hostFunctions()
	out := make([]Function, len(all))
	for i := range all {
		params, results := all[i].types()
		out[i] = Function{all[i].name, params, results}
	}
	return out
}

// Instantiate defines the host module in a runtime, once for all its runs.
func Instantiate(ctx context.Context, r wazero.Runtime) (api.Closer, error) {
	builder := r.NewHostModuleBuilder(ModuleName)
	for _, f := range hostFunctions() {
		params, results := f.types()
		builder = builder.NewFunctionBuilder().
			WithGoModuleFunction(goFunction(f.call), params, results).
			WithName(f.name).
			Export(f.name)
	}
	return builder.Instantiate(ctx)
}

// GoFunction is one function of [Functions], for an embedder that puts its own in
// front of it: the same World, the same rules. It is nil if there is none of that
// name.
func GoFunction(name string) api.GoModuleFunction {
	for _, f := range hostFunctions() {
		if f.name == name {
			return goFunction(f.call)
		}
	}
	return nil
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
