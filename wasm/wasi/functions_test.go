package wasi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"openskill/internal/musttest"
	"openskill/wasm/guestfs"
	"openskill/wasm/wasi"
)

// The table of imports is wazero's own, name by name and type by type.
func TestFunctionsAreThoseOfWazero(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	compiled := musttest.Get(wasi_snapshot_preview1.NewBuilder(r).Compile(ctx))(t)
	theirs := compiled.ExportedFunctions()
	var ours []wasi.Function
	for _, f := range wasi.Functions() {
		if f.Module == wasi.ModuleName {
			ours = append(ours, f)
		}
	}
	if len(ours) != 46 || len(theirs) != 46 {
		t.Fatalf("%d functions, wazero has %d, want 46", len(ours), len(theirs))
	}
	for _, f := range ours {
		def, ok := theirs[f.Name]
		if !ok {
			t.Errorf("%s: not in wazero", f.Name)
			continue
		}
		if !bytes.Equal(def.ParamTypes(), f.Params) || !bytes.Equal(def.ResultTypes(), f.Results) {
			t.Errorf("%s: %v %v, wazero has %v %v", f.Name, f.Params, f.Results, def.ParamTypes(), def.ResultTypes())
		}
	}
}

const (
	noPath  = memEnd - 2 // a pointer at the edge
	outside = math.MaxUint32
	noFD    = 99
)

// Every call of preview1, with arguments that it takes and with some that it
// refuses. Descriptors: 3 is "/", 4 is /data/a.txt for reading, 5 is
// /work/new.txt for reading and writing ("0123456789"), 6 is the folder /work.
func TestEveryCall(t *testing.T) {
	type row struct {
		call string
		args []uint64
		want guestfs.Errno
	}
	const (
		pA, nA       = 0x200, 10 // data/a.txt
		pSub, nSub   = 0x240, 8  // data/sub
		pNew, nNew   = 0x280, 12 // work/new.txt
		pDir, nDir   = 0x2c0, 8  // work/dir
		pNo, nNo     = 0x300, 9  // work/none
		pUp, nUp     = 0x340, 5  // ../up
		pAbs, nAbs   = 0x380, 5  // /data
		pTo, nTo     = 0x3c0, 11 // work/to.txt
		pBad, nBad   = 0x400, 3  // not UTF-8
		pRel, nRel   = 0x440, 7  // new.txt
		pLong, nLong = 0x1000, 5000
	)
	rows := []row{
		{"args_sizes_get", []uint64{atResult, atResult + 4}, 0},
		{"args_sizes_get", []uint64{outside, atResult}, guestfs.EFAULT},
		{"args_sizes_get", []uint64{atResult, outside}, guestfs.EFAULT},
		{"args_get", []uint64{atResult, atResult + 64}, 0},
		{"args_get", []uint64{noPath, atResult}, guestfs.EFAULT},
		{"args_get", []uint64{atResult, noPath}, guestfs.EFAULT},
		{"environ_sizes_get", []uint64{atResult, atResult + 4}, 0},
		{"environ_sizes_get", []uint64{atResult, outside}, guestfs.EFAULT},
		{"environ_get", []uint64{atResult, atResult + 64}, 0},
		{"environ_get", []uint64{outside, outside}, guestfs.EFAULT},

		{"clock_res_get", []uint64{0, atResult}, 0},
		{"clock_res_get", []uint64{3, atResult}, 0},
		{"clock_res_get", []uint64{4, atResult}, guestfs.EINVAL},
		{"clock_res_get", []uint64{0, noPath}, guestfs.EFAULT},
		{"clock_time_get", []uint64{0, 0, atResult}, 0},
		{"clock_time_get", []uint64{1, 0, atResult}, 0},
		{"clock_time_get", []uint64{2, 0, atResult}, 0},
		{"clock_time_get", []uint64{3, 0, atResult}, 0},
		{"clock_time_get", []uint64{4, 0, atResult}, guestfs.EINVAL},
		{"clock_time_get", []uint64{1, 0, noPath}, guestfs.EFAULT},

		{"fd_advise", []uint64{4, 0, 0, 5}, 0},
		{"fd_advise", []uint64{4, 0, 0, 6}, guestfs.EINVAL},
		{"fd_advise", []uint64{noFD, 0, 0, 0}, guestfs.EBADF},
		{"fd_allocate", []uint64{5, 0, 16}, 0},
		{"fd_allocate", []uint64{5, 0, 0}, guestfs.EINVAL},
		{"fd_allocate", []uint64{5, math.MaxInt64, 1}, guestfs.EINVAL},
		{"fd_allocate", []uint64{5, 1 << 63, 1}, guestfs.EINVAL},
		{"fd_allocate", []uint64{5, 0, 1 << 40}, guestfs.ENOSPC},
		{"fd_allocate", []uint64{4, 0, 1}, guestfs.EROFS},
		{"fd_allocate", []uint64{1, 0, 1}, guestfs.ESPIPE},
		{"fd_allocate", []uint64{noFD, 0, 1}, guestfs.EBADF},
		{"fd_datasync", []uint64{5}, 0},
		{"fd_datasync", []uint64{noFD}, guestfs.EBADF},
		{"fd_sync", []uint64{4}, 0},
		{"fd_sync", []uint64{math.MaxUint32}, guestfs.EBADF},

		{"fd_fdstat_get", []uint64{0, atResult}, 0},
		{"fd_fdstat_get", []uint64{3, atResult}, 0},
		{"fd_fdstat_get", []uint64{noFD, atResult}, guestfs.EBADF},
		{"fd_fdstat_get", []uint64{0, noPath}, guestfs.EFAULT},
		{"fd_fdstat_set_flags", []uint64{5, 1}, 0},
		{"fd_fdstat_set_flags", []uint64{5, 0}, 0},
		{"fd_fdstat_set_flags", []uint64{5, 2}, guestfs.EINVAL},
		{"fd_fdstat_set_flags", []uint64{5, 1 << 20}, guestfs.EINVAL},
		{"fd_fdstat_set_flags", []uint64{noFD, 0}, guestfs.EBADF},
		{"fd_fdstat_set_rights", []uint64{5, 0, 0}, guestfs.ENOSYS},
		{"fd_fdstat_set_rights", []uint64{noFD, 0, 0}, guestfs.EBADF},
		{"fd_filestat_get", []uint64{1, atResult}, 0},
		{"fd_filestat_get", []uint64{3, atResult}, 0},
		{"fd_filestat_get", []uint64{4, atResult}, 0},
		{"fd_filestat_get", []uint64{noFD, atResult}, guestfs.EBADF},
		{"fd_filestat_get", []uint64{4, memEnd - 63}, guestfs.EFAULT},
		{"fd_filestat_set_size", []uint64{5, 10}, 0},
		{"fd_filestat_set_size", []uint64{5, 1 << 63}, guestfs.EINVAL},
		{"fd_filestat_set_size", []uint64{5, 1 << 62}, guestfs.ENOSPC},
		{"fd_filestat_set_size", []uint64{4, 0}, guestfs.EROFS},
		{"fd_filestat_set_size", []uint64{6, 0}, guestfs.EISDIR},
		{"fd_filestat_set_size", []uint64{1, 0}, guestfs.EINVAL},
		{"fd_filestat_set_size", []uint64{noFD, 0}, guestfs.EBADF},
		{"fd_filestat_set_times", []uint64{5, 1, 1, 5}, 0},
		{"fd_filestat_set_times", []uint64{5, 1, 1, 10}, 0},
		{"fd_filestat_set_times", []uint64{5, 1, 1, 3}, guestfs.EINVAL},
		{"fd_filestat_set_times", []uint64{5, 1, 1, 12}, guestfs.EINVAL},
		{"fd_filestat_set_times", []uint64{5, 1, 1, 16}, guestfs.EINVAL},
		{"fd_filestat_set_times", []uint64{4, 1, 1, 5}, guestfs.EROFS},
		{"fd_filestat_set_times", []uint64{1, 1, 1, 5}, guestfs.EPERM},
		{"fd_filestat_set_times", []uint64{noFD, 1, 1, 5}, guestfs.EBADF},

		{"fd_read", []uint64{4, atIovs, 1, atResult}, 0},
		{"fd_read", []uint64{4, atIovs, 0, atResult}, 0},
		{"fd_read", []uint64{4, atIovs, 1025, atResult}, guestfs.EINVAL},
		{"fd_read", []uint64{4, noPath, 1, atResult}, guestfs.EFAULT},
		{"fd_read", []uint64{4, atIovs, 1, noPath}, guestfs.EFAULT},
		{"fd_read", []uint64{4, atIovs + 8, 1, atResult}, guestfs.EFAULT},
		{"fd_read", []uint64{1, atIovs, 1, atResult}, guestfs.EBADF},
		{"fd_read", []uint64{3, atIovs, 1, atResult}, guestfs.EISDIR},
		{"fd_read", []uint64{noFD, atIovs, 1, atResult}, guestfs.EBADF},
		{"fd_pread", []uint64{4, atIovs, 1, 2, atResult}, 0},
		{"fd_pread", []uint64{4, atIovs, 1, math.MaxInt64, atResult}, 0},
		{"fd_pread", []uint64{4, atIovs, 1, 1 << 63, atResult}, guestfs.EINVAL},
		{"fd_pread", []uint64{0, atIovs, 1, 0, atResult}, guestfs.ESPIPE},
		{"fd_pread", []uint64{4, atIovs, 1, 0, noPath}, guestfs.EFAULT},
		{"fd_pread", []uint64{noFD, atIovs, 1, 0, atResult}, guestfs.EBADF},
		{"fd_write", []uint64{1, atIovs, 1, atResult}, 0},
		{"fd_write", []uint64{5, atIovs, 1, atResult}, 0},
		{"fd_write", []uint64{4, atIovs, 1, atResult}, guestfs.EBADF},
		{"fd_write", []uint64{0, atIovs, 1, atResult}, guestfs.EBADF},
		{"fd_write", []uint64{6, atIovs, 1, atResult}, guestfs.EISDIR},
		{"fd_write", []uint64{1, atIovs, math.MaxUint32, atResult}, guestfs.EINVAL},
		{"fd_write", []uint64{1, atIovs + 8, 1, atResult}, guestfs.EFAULT},
		{"fd_write", []uint64{1, atIovs, 1, noPath}, guestfs.EFAULT},
		{"fd_pwrite", []uint64{5, atIovs, 1, 0, atResult}, 0},
		{"fd_pwrite", []uint64{5, atIovs, 1, math.MaxInt64, atResult}, guestfs.EFBIG},
		{"fd_pwrite", []uint64{5, atIovs, 1, 1 << 62, atResult}, guestfs.ENOSPC},
		{"fd_pwrite", []uint64{5, atIovs, 1, 1 << 63, atResult}, guestfs.EINVAL},
		{"fd_pwrite", []uint64{1, atIovs, 1, 0, atResult}, guestfs.ESPIPE},
		{"fd_pwrite", []uint64{4, atIovs, 1, 0, atResult}, guestfs.EBADF},
		{"fd_pwrite", []uint64{noFD, atIovs, 1, 0, atResult}, guestfs.EBADF},

		{"fd_seek", []uint64{4, 2, 0, atResult}, 0},
		{"fd_seek", []uint64{4, 2, 1, atResult}, 0},
		{"fd_seek", []uint64{4, 2, 2, atResult}, 0},
		{"fd_seek", []uint64{4, math.MaxInt64, 0, atResult}, 0},
		{"fd_seek", []uint64{4, 1, 1, atResult}, guestfs.EINVAL},
		{"fd_seek", []uint64{4, 1 << 63, 0, atResult}, guestfs.EINVAL},
		{"fd_seek", []uint64{4, 1 << 63, 1, atResult}, guestfs.EINVAL},
		{"fd_seek", []uint64{4, 0, 3, atResult}, guestfs.EINVAL},
		{"fd_seek", []uint64{4, 0, 0, noPath}, guestfs.EFAULT},
		{"fd_seek", []uint64{3, 0, 0, atResult}, guestfs.EISDIR},
		{"fd_seek", []uint64{0, 0, 0, atResult}, guestfs.ESPIPE},
		{"fd_seek", []uint64{noFD, 0, 0, atResult}, guestfs.EBADF},
		{"fd_tell", []uint64{4, atResult}, 0},
		{"fd_tell", []uint64{4, noPath}, guestfs.EFAULT},
		{"fd_tell", []uint64{1, atResult}, guestfs.ESPIPE},
		{"fd_tell", []uint64{3, atResult}, guestfs.EISDIR},
		{"fd_tell", []uint64{noFD, atResult}, guestfs.EBADF},

		{"fd_prestat_get", []uint64{3, atResult}, 0},
		{"fd_prestat_get", []uint64{3, noPath}, guestfs.EFAULT},
		{"fd_prestat_get", []uint64{4, atResult}, guestfs.EBADF},
		{"fd_prestat_get", []uint64{0, atResult}, guestfs.EBADF},
		{"fd_prestat_dir_name", []uint64{3, atResult, 1}, 0},
		{"fd_prestat_dir_name", []uint64{3, atResult, 2}, 0},
		{"fd_prestat_dir_name", []uint64{3, atResult, 0}, guestfs.ENAMETOOLONG},
		{"fd_prestat_dir_name", []uint64{3, outside, 1}, guestfs.EFAULT},
		{"fd_prestat_dir_name", []uint64{6, atResult, 1}, guestfs.EBADF},
		{"fd_readdir", []uint64{3, atData, 4096, 0, atResult}, 0},
		{"fd_readdir", []uint64{3, atData, 4096, math.MaxUint64, atResult}, 0},
		{"fd_readdir", []uint64{3, atData, 23, 0, atResult}, guestfs.EINVAL},
		{"fd_readdir", []uint64{3, outside - 10, 4096, 0, atResult}, guestfs.EFAULT},
		{"fd_readdir", []uint64{3, atData, 4096, 0, noPath}, guestfs.EFAULT},
		{"fd_readdir", []uint64{4, atData, 4096, 0, atResult}, guestfs.EBADF},
		{"fd_readdir", []uint64{noFD, atData, 4096, 0, atResult}, guestfs.EBADF},

		{"path_create_directory", []uint64{3, pDir, nDir}, 0},
		{"path_create_directory", []uint64{3, pDir, nDir}, guestfs.EEXIST},
		{"path_create_directory", []uint64{3, pUp, nUp}, guestfs.EPERM},
		{"path_create_directory", []uint64{3, pAbs, nAbs}, guestfs.EPERM},
		{"path_create_directory", []uint64{3, pSub, nSub}, guestfs.EROFS},
		{"path_create_directory", []uint64{3, pBad, nBad}, guestfs.EILSEQ},
		{"path_create_directory", []uint64{3, pLong, nLong}, guestfs.ENAMETOOLONG},
		{"path_create_directory", []uint64{3, pDir, 0}, guestfs.ENOENT},
		{"path_create_directory", []uint64{3, noPath, 8}, guestfs.EFAULT},
		{"path_create_directory", []uint64{4, pDir, nDir}, guestfs.ENOTDIR},
		{"path_create_directory", []uint64{noFD, pDir, nDir}, guestfs.EBADF},
		{"path_filestat_get", []uint64{3, 1, pA, nA, atResult}, 0},
		{"path_filestat_get", []uint64{3, 0, pSub, nSub, atResult}, 0},
		{"path_filestat_get", []uint64{6, 0, pRel, nRel, atResult}, 0},
		{"path_filestat_get", []uint64{3, 2, pA, nA, atResult}, guestfs.EINVAL},
		{"path_filestat_get", []uint64{3, 1, pNo, nNo, atResult}, guestfs.ENOENT},
		{"path_filestat_get", []uint64{3, 1, pA, nA, memEnd - 63}, guestfs.EFAULT},
		{"path_filestat_get", []uint64{noFD, 1, pA, nA, atResult}, guestfs.EBADF},
		{"path_filestat_set_times", []uint64{3, 1, pNew, nNew, 5, 5, 5}, 0},
		{"path_filestat_set_times", []uint64{3, 1, pNew, nNew, 5, 5, 3}, guestfs.EINVAL},
		{"path_filestat_set_times", []uint64{3, 2, pNew, nNew, 5, 5, 5}, guestfs.EINVAL},
		{"path_filestat_set_times", []uint64{3, 1, pNo, nNo, 5, 5, 5}, guestfs.ENOENT},
		{"path_filestat_set_times", []uint64{3, 1, pA, nA, 5, 5, 5}, guestfs.EROFS},
		{"path_filestat_set_times", []uint64{noFD, 1, pA, nA, 5, 5, 5}, guestfs.EBADF},
		{"path_link", []uint64{3, 0, pNew, nNew, 3, pTo, nTo}, 0},
		{"path_link", []uint64{3, 0, pNew, nNew, 3, pTo, nTo}, guestfs.EEXIST},
		{"path_unlink_file", []uint64{3, pTo, nTo}, 0},
		{"path_link", []uint64{3, 0, pA, nA, 3, pTo, nTo}, guestfs.EXDEV},
		{"path_link", []uint64{3, 0, pA, nA, 3, pSub, nSub}, guestfs.EROFS},
		{"path_link", []uint64{3, 0, pA, nA, noFD, pTo, nTo}, guestfs.EBADF},
		{"path_link", []uint64{3, 2, pNew, nNew, 3, pTo, nTo}, guestfs.EINVAL},
		{"path_symlink", []uint64{pAbs, nAbs, 3, pTo, nTo}, guestfs.EPERM},
		{"path_symlink", []uint64{pAbs, 0, 3, pTo, nTo}, guestfs.ENOENT},
		{"path_symlink", []uint64{pAbs, nAbs, 3, pA, nA}, guestfs.EROFS},
		{"path_symlink", []uint64{pBad, nBad, 3, pTo, nTo}, guestfs.EILSEQ},
		{"path_symlink", []uint64{pRel, nRel, noFD, pTo, nTo}, guestfs.EBADF},
		{"path_symlink", []uint64{pRel, nRel, 3, pTo, nTo}, 0},
		{"path_symlink", []uint64{pRel, nRel, 3, pTo, nTo}, guestfs.EEXIST},
		{"path_filestat_get", []uint64{3, 0, pTo, nTo, atResult}, 0},
		{"path_filestat_get", []uint64{3, 1, pTo, nTo, atResult}, 0}, // new.txt beside it
		{"path_filestat_set_times", []uint64{3, 0, pTo, nTo, 5, 5, 5}, 0},
		{"path_readlink", []uint64{3, pTo, nTo, atData, 100, atResult}, 0},
		{"path_readlink", []uint64{3, pTo, nTo, atData, 1, atResult}, 0},
		{"path_readlink", []uint64{3, pTo, nTo, atData, 100, noPath}, guestfs.EFAULT},
		{"path_open", []uint64{3, 0, pTo, nTo, 0, rightRead, 0, 0, atResult}, guestfs.ELOOP},
		{"path_open", []uint64{3, 1, pTo, nTo, oCreate | oExcl, rightWrite, 0, 0, atResult}, guestfs.EEXIST},
		{"path_remove_directory", []uint64{3, pTo, nTo}, guestfs.ENOTDIR},
		{"path_unlink_file", []uint64{3, pTo, nTo}, 0},
		{"path_symlink", []uint64{outside, 9, 3, pTo, nTo}, guestfs.EFAULT},
		{"path_symlink", []uint64{pLong, nLong, 3, pTo, nTo}, guestfs.ENAMETOOLONG},
		{"path_readlink", []uint64{3, pA, nA, atData, 100, atResult}, guestfs.EINVAL},
		{"path_readlink", []uint64{3, pA, nA, atData, 0, atResult}, guestfs.EINVAL},
		{"path_readlink", []uint64{3, pNo, nNo, atData, 100, atResult}, guestfs.ENOENT},
		{"path_readlink", []uint64{3, pA, nA, outside, 100, atResult}, guestfs.EFAULT},
		{"path_readlink", []uint64{noFD, pA, nA, atData, 100, atResult}, guestfs.EBADF},
		{"path_rename", []uint64{3, pNo, nNo, 3, pTo, nTo}, guestfs.ENOENT},
		{"path_rename", []uint64{3, pA, nA, 3, pTo, nTo}, guestfs.EXDEV},
		{"path_rename", []uint64{3, pA, nA, 3, pSub, nSub}, guestfs.EROFS},
		{"path_rename", []uint64{3, pNew, nNew, 3, pUp, nUp}, guestfs.EPERM},
		{"path_rename", []uint64{3, pNew, nNew, noFD, pTo, nTo}, guestfs.EBADF},
		{"path_rename", []uint64{3, pNew, nNew, 3, pDir, nDir}, guestfs.EISDIR},
		{"path_rename", []uint64{3, pDir, nDir, 3, pNew, nNew}, guestfs.ENOTDIR},
		{"path_rename", []uint64{3, pNew, nNew, 3, pTo, nTo}, 0},
		{"path_rename", []uint64{3, pTo, nTo, 3, pNew, nNew}, 0},
		{"path_unlink_file", []uint64{3, pDir, nDir}, guestfs.EISDIR},
		{"path_unlink_file", []uint64{3, pA, nA}, guestfs.EROFS},
		{"path_unlink_file", []uint64{3, pNo, nNo}, guestfs.ENOENT},
		{"path_unlink_file", []uint64{noFD, pNo, nNo}, guestfs.EBADF},
		{"path_remove_directory", []uint64{3, pNew, nNew}, guestfs.ENOTDIR},
		{"path_remove_directory", []uint64{3, pSub, nSub}, guestfs.EROFS},
		{"path_remove_directory", []uint64{3, pDir, nDir}, 0},
		{"path_remove_directory", []uint64{3, pDir, nDir}, guestfs.ENOENT},
		{"path_remove_directory", []uint64{3, pDir, 4}, guestfs.EBUSY}, // work
		{"path_unlink_file", []uint64{3, pNew, nNew}, 0},

		{"path_open", []uint64{3, 1, pA, nA, 0, rightRead, 0, 0, atResult}, 0},
		{"path_open", []uint64{3, 1, pA, nA, 0, rightRead, 0, 0, noPath}, guestfs.EFAULT},
		{"path_open", []uint64{3, 2, pA, nA, 0, rightRead, 0, 0, atResult}, guestfs.EINVAL},
		{"path_open", []uint64{3, 1, pA, nA, 16, rightRead, 0, 0, atResult}, guestfs.EINVAL},
		{"path_open", []uint64{3, 1, pA, nA, 0, rightRead, 0, 32, atResult}, guestfs.EINVAL},
		{"path_open", []uint64{3, 1, pA, nA, oDirectory, rightRead, 0, 0, atResult}, guestfs.ENOTDIR},
		{"path_open", []uint64{3, 1, pNo, nNo, 0, rightRead, 0, 0, atResult}, guestfs.ENOENT},
		{"path_open", []uint64{3, 1, pUp, nUp, 0, rightRead, 0, 0, atResult}, guestfs.EPERM},
		{"path_open", []uint64{0, 1, pA, nA, 0, rightRead, 0, 0, atResult}, guestfs.ENOTDIR},
		{"path_open", []uint64{noFD, 1, pA, nA, 0, rightRead, 0, 0, atResult}, guestfs.EBADF},

		{"poll_oneoff", []uint64{atIovs, atData, 0, atResult}, guestfs.EINVAL},
		{"poll_oneoff", []uint64{atIovs, atData, 1025, atResult}, guestfs.EINVAL},
		{"poll_oneoff", []uint64{outside, atData, 1, atResult}, guestfs.EFAULT},
		{"poll_oneoff", []uint64{atIovs, outside, 1, atResult}, guestfs.EFAULT},
		{"poll_oneoff", []uint64{atIovs, atData, 1, noPath}, guestfs.EFAULT},
		{"proc_raise", []uint64{9}, guestfs.ENOSYS},
		{"sched_yield", nil, 0},
		{"random_get", []uint64{atData, 100}, 0},
		{"random_get", []uint64{outside, 0}, guestfs.EFAULT},
		{"random_get", []uint64{atData, outside}, guestfs.EFAULT},
		{"sock_accept", []uint64{3, 0, atResult}, guestfs.ENOTSOCK},
		{"sock_accept", []uint64{noFD, 0, atResult}, guestfs.EBADF},
		{"sock_recv", []uint64{0, atIovs, 1, 0, atResult, atResult + 4}, guestfs.ENOTSOCK},
		{"sock_recv", []uint64{noFD, atIovs, 1, 0, atResult, atResult + 4}, guestfs.EBADF},
		{"sock_send", []uint64{1, atIovs, 1, 0, atResult}, guestfs.ENOTSOCK},
		{"sock_send", []uint64{noFD, atIovs, 1, 0, atResult}, guestfs.EBADF},
		{"sock_shutdown", []uint64{4, 3}, guestfs.ENOTSOCK},
		{"sock_shutdown", []uint64{noFD, 3}, guestfs.EBADF},

		{"http_request", []uint64{atData, 5, atResult}, 0},
		{"http_request", []uint64{outside, 5, atResult}, guestfs.EFAULT},
		{"http_request", []uint64{atData, outside, atResult}, guestfs.EFAULT},
		{"http_request", []uint64{atData, 5, noPath}, guestfs.EFAULT},
		{"http_read", []uint64{atData, 3, atResult}, 0},
		{"http_read", []uint64{outside, 3, atResult}, guestfs.EFAULT},
		{"http_read", []uint64{atData, 3, noPath}, guestfs.EFAULT},

		{"fd_renumber", []uint64{4, 4}, 0},
		{"fd_renumber", []uint64{4, noFD}, guestfs.EBADF},
		{"fd_renumber", []uint64{noFD, 4}, guestfs.EBADF},
		{"fd_renumber", []uint64{4, 5}, 0},
		{"fd_close", []uint64{4}, guestfs.EBADF},
		{"fd_close", []uint64{5}, 0},
		{"fd_close", []uint64{5}, guestfs.EBADF},
		{"fd_close", []uint64{3}, 0},
		{"path_open", []uint64{3, 1, pA, nA, 0, rightRead, 0, 0, atResult}, guestfs.EBADF},
	}

	root, _ := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Args: []string{"prog", "x"}, Env: []string{"A=b"}, Root: root, Fetch: answer("fetched")})
	if fd := g.mustOpen("data/a.txt", 0, rightRead); fd != 4 {
		t.Fatalf("descriptor %d, want 4, the lowest free", fd)
	}
	if fd := g.mustOpen("work/new.txt", oCreate, rightRead|rightWrite); fd != 5 {
		t.Fatalf("descriptor %d, want 5", fd)
	}
	g.mustOpen("work", oDirectory, 0)
	if errno := g.write(5, "0123456789"); errno != 0 {
		t.Fatal(errno)
	}
	for at, s := range map[uint32]string{
		pA: "data/a.txt", pSub: "data/sub", pNew: "work/new.txt", pDir: "work/dir", pNo: "work/none", pUp: "../up",
		pAbs: "/data", pTo: "work/to.txt", pBad: "a\xff\xfe", pRel: "new.txt", pLong: strings.Repeat("x/", nLong/2),
	} {
		g.put(at, s)
	}
	seen := map[string]bool{"proc_exit": true} // TestExit
	for i, r := range rows {
		g.iovs(atData, 4, memEnd-2, 4)
		seen[r.call] = true
		if got := g.call(r.call, r.args...); got != r.want {
			t.Errorf("row %d: %s%v = %v, want %v", i, r.call, r.args, got, r.want)
		}
	}
	for _, f := range wasi.Functions() {
		if f.Module != wasi.PluginModule && !seen[f.Name] {
			t.Errorf("%s has no row", f.Name)
		}
	}
}

// E16: the exit code is recorded as it is, and never taken for anything else.
func TestE16Exit(t *testing.T) {
	for _, code := range []uint32{0, 1, 0xefffffff, 0xffffffff} {
		g := newGuest(t, wasi.Config{})
		if g.w.Stopped() != nil {
			t.Fatal("a new world has stopped")
		}
		if stop := g.wantStop(wasi.ReasonExit, "proc_exit", uint64(code)); stop.ExitCode != code {
			t.Errorf("exit code %#x, want %#x", stop.ExitCode, code)
		}
		// A run that has ended stays ended, for the same reason.
		if stop := g.wantStop(wasi.ReasonExit, "proc_exit", uint64(code)+1); stop.ExitCode != code {
			t.Errorf("exit code %#x after a second exit, want %#x", stop.ExitCode, code)
		}
	}
}

func TestStopText(t *testing.T) {
	for stop, want := range map[wasi.Stop]string{
		{Reason: wasi.ReasonExit, ExitCode: 3}: "wasi: exit code 3",
		{Reason: wasi.ReasonOutputLimit}:       "wasi: run ended: output limit",
		{Reason: wasi.ReasonDeadline}:          "wasi: run ended: deadline",
		{Reason: wasi.ReasonCancelled}:         "wasi: run ended: cancelled",
		{}:                                     "wasi: run ended: unknown",
	} {
		if got := stop.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNoWorld(t *testing.T) {
	g := newGuest(t, wasi.Config{})
	g.ctx = context.Background()
	if _, err := g.try("sched_yield"); !errors.Is(err, wasi.ErrNoWorld) {
		t.Fatalf("error %v, want ErrNoWorld", err)
	}
}

// E21: a guest sees the arguments and the environment of its world and no others.
func TestE21ArgumentsAndEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_HOST", "x")
	for _, tc := range []struct {
		name      string
		args, env []string
	}{{"none", nil, nil}, {"some", []string{"prog", "", "-x=ü"}, []string{"A=1", "B="}}} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGuest(t, wasi.Config{Args: tc.args, Env: tc.env})
			for _, list := range []struct {
				prefix string
				want   []string
			}{{"args", tc.args}, {"environ", tc.env}} {
				g.want(0, list.prefix+"_sizes_get", atResult, atResult+4)
				count, size := g.u32(atResult), g.u32(atResult+4)
				g.want(0, list.prefix+"_get", atIovs, atData)
				var got []string
				for i := range count {
					at := g.u32(atIovs + i*4)
					s, _, _ := strings.Cut(g.text(at, atData+size-at), "\x00")
					got = append(got, s)
				}
				if strings.Join(got, "|") != strings.Join(list.want, "|") || len(got) != len(list.want) {
					t.Errorf("%s = %q, want %q", list.prefix, got, list.want)
				}
			}
		})
	}
}

// E20: a lot of randomness is made in pieces that are charged, and a source of the
// embedder's gives the same bytes to the same run.
func TestE20Random(t *testing.T) {
	var units uint64
	g := newGuestContext(context.Background(), t, wasi.Config{Charge: func(n uint64) { units += n }}, 1024)
	g.want(0, "random_get", 0, 64<<20)
	if units < 8<<20 {
		t.Errorf("%d units for 64 MiB, want 8 Mi", units)
	}
	first := g.text(0, 64)
	g.want(0, "random_get", 0, 64)
	if g.text(0, 64) == first {
		t.Error("the same bytes twice")
	}

	for range 2 {
		g := newGuest(t, wasi.Config{Random: strings.NewReader("always the same")})
		g.want(0, "random_get", atData, 6)
		if got := g.text(atData, 6); got != "always" {
			t.Errorf("%q from the source", got)
		}
		g.want(guestfs.EIO, "random_get", atData, 100) // the source is dry
	}
}

func TestRandomEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	pieces := 0
	g := newGuestContext(ctx, t, wasi.Config{Random: readerFunc(func(p []byte) (int, error) {
		if pieces++; pieces == 3 {
			cancel()
		}
		return len(p), nil
	})}, 1024)
	g.wantStop(wasi.ReasonCancelled, "random_get", 0, 64<<20)
	if pieces != 3 {
		t.Errorf("%d pieces were made, want 3", pieces)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestClocks(t *testing.T) {
	wall := time.Unix(1700000000, 123456789)
	g := newGuest(t, wasi.Config{Wall: func() time.Time { return wall }, Mono: func() int64 { return 42 }})
	g.want(0, "clock_time_get", 0, 0, atResult)
	if got := g.u64(atResult); got != 1700000000123456789 {
		t.Errorf("wall clock %d", got)
	}
	for _, clock := range []uint64{1, 2, 3} {
		g.want(0, "clock_time_get", clock, 0, atResult)
		if got := g.u64(atResult); got != 1_000_000_042 {
			t.Errorf("clock %d shows %d, want a second and 42", clock, got)
		}
	}

	g = newGuest(t, wasi.Config{})
	g.want(0, "clock_time_get", 0, 0, atResult)
	if got := g.u64(atResult); got%uint64(wasi.WallGrain) != 0 || time.Since(time.Unix(0, int64(got))) > time.Minute {
		t.Errorf("wall clock %d: not coarse, or not now", got)
	}
	g.want(0, "clock_time_get", 1, 0, atResult)
	before := g.u64(atResult)
	g.want(0, "clock_time_get", 1, 0, atResult)
	if after := g.u64(atResult); after < before || before < uint64(time.Second) || after%uint64(wasi.MonoGrain) != 0 {
		t.Errorf("monotonic clock went from %d to %d", before, after)
	}
	for clock, want := range []time.Duration{wasi.WallGrain, wasi.MonoGrain, wasi.MonoGrain, wasi.MonoGrain} {
		g.want(0, "clock_res_get", uint64(clock), atResult)
		if got := time.Duration(g.u64(atResult)); got != want {
			t.Errorf("resolution of clock %d is %v, want %v", clock, got, want)
		}
	}
	// Times out of the range of nanoseconds are held at its ends.
	for year, want := range map[int]uint64{1960: 0, 3000: math.MaxInt64} {
		g := newGuest(t, wasi.Config{Wall: func() time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }})
		g.want(0, "clock_time_get", 0, 0, atResult)
		if got := g.u64(atResult); got != want {
			t.Errorf("year %d is %d, want %d", year, got, want)
		}
	}
}

// Charge may end the run from within any call, and nothing is left open.
func TestChargeMayPanic(t *testing.T) {
	fuel := errors.New("no fuel")
	left := uint64(5000)
	root, _ := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Root: root, Charge: func(n uint64) {
		if n > left {
			panic(fuel)
		}
		left -= n
	}})
	path, n := g.put(atPath, "data/a.txt")
	for {
		_, err := g.try("path_open", 3, 1, path, n, 0, rightRead, 0, 0, atResult)
		if err == nil {
			continue
		}
		if !errors.Is(err, fuel) {
			t.Fatalf("error %v, want the one of Charge", err)
		}
		break
	}
	if g.w.Stopped() != nil {
		t.Error("the world recorded a stop that it did not decide")
	}
}

var _ io.Reader = readerFunc(nil)

// What libc learns of a descriptor, field by field.
func TestDescriptorsDescribed(t *testing.T) {
	const (
		seek, tell, write, read, readdir, open = 1 << 2, 1 << 5, rightWrite, rightRead, 1 << 14, 1 << 13
	)
	root, _ := worldRoot(t, dataFolder(t))
	g := newGuest(t, wasi.Config{Root: root})
	ro, rw := g.mustOpen("data/a.txt", 0, read), g.mustOpen("work/f", oCreate, read|write)
	dir := g.mustOpen("data", oDirectory, read)
	for _, tc := range []struct {
		what                   string
		fd                     uint64
		kind                   byte
		has, hasNot, inherited uint64
	}{
		{"stdin", 0, 1, read, write | seek | tell, 0},
		{"stdout", 1, 1, write, read | seek | tell, 0},
		{"stderr", 2, 1, write, read | seek | tell, 0},
		{"the preopen", 3, 3, readdir | open, seek, read | write | seek | tell | open},
		{"a folder", dir, 3, readdir | open, seek, read | write},
		{"a file to read", ro, 4, read | seek | tell, write, 0},
		{"a file to write", rw, 4, read | write | seek | tell, open, 0},
	} {
		g.want(0, "fd_fdstat_get", tc.fd, atResult)
		kind, base, inheriting := g.text(atResult, 1)[0], g.u64(atResult+8), g.u64(atResult+16)
		if kind != tc.kind || base&tc.has != tc.has || base&tc.hasNot != 0 || inheriting&tc.inherited != tc.inherited {
			t.Errorf("%s: kind %d, rights %b, inheriting %b", tc.what, kind, base, inheriting)
		}
		g.want(0, "fd_filestat_get", tc.fd, atResult)
		if kind := g.text(atResult+16, 1)[0]; kind != tc.kind || g.u64(atResult+24) != 1 {
			t.Errorf("%s: filestat kind %d, %d links", tc.what, kind, g.u64(atResult+24))
		}
	}
	g.want(0, "fd_filestat_get", ro, atResult)
	if size, a, m, c := g.u64(atResult+32), g.u64(atResult+40), g.u64(atResult+48), g.u64(atResult+56); size != 5 || m == 0 || a != m || c != m {
		t.Errorf("size %d, times %d %d %d", size, a, m, c)
	}
}
