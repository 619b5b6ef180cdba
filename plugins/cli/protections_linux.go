package cli

import "fmt"

// String names the guard in errors.
func (g *guard) String() string {
	name := [...]string{modeInit: "namespaces", modeReaper: "subreaper", modeGroup: "process group"}[g.mode]
	switch {
	case g.users != nil:
		name += " with a user for each run"
	case g.userNS:
		name += " in a user namespace"
	}
	if g.readonly {
		name += ", read-only mounts"
	}
	if g.landlock > 0 {
		name += fmt.Sprintf(", Landlock %d", g.landlock)
	}
	return name
}

func (g *guard) protections() []Protection {
	choose := func(name string, holds bool, yes, no string) Protection {
		if holds {
			return Protection{name, true, yes}
		}
		return Protection{name, false, no}
	}
	files := "Landlock: scripts read the system, the interpreter, their own folder and granted data, and write ./work"
	if g.landlock > 0 && g.landlock < 3 {
		files += "; writable files can also be truncated on this kernel"
	}
	if !g.readonly && g.users == nil {
		files += "; modes and times of the host user's own files can be changed"
	}
	noFiles := "no Landlock: scripts have the file access of the host's user, granted data included"
	if g.readonly {
		noFiles = "no Landlock: scripts read what the host's user can; they write ./work only"
	}
	if g.users != nil {
		noFiles = "no Landlock: scripts read what root can; they write only where everybody may"
	}
	processes := "a PID namespace: the kernel ends all of a run together"
	if g.mode == modeReaper {
		processes = "a subreaper: descendants are killed one by one until none is left"
	}
	return []Protection{
		choose("processes", g.mode != modeGroup, processes,
			"a process group: a process that leaves it (setsid) outlives the run"),
		choose("host-death", g.mode == modeInit, "scripts end when the host is killed",
			"processes that a script started may outlive a killed host"),
		choose("process-limit", g.counts, "the number of processes of a run is limited",
			"the number of processes is not limited; the timeout ends a fork bomb"),
		{"memory", true, "address space is limited for each process, not for all of a run together"},
		choose("files", g.landlock > 0, files, noFiles),
		choose("network", g.flags != 0, "a network namespace without interfaces; Unix sockets stay reachable",
			g.noNetwork()),
		choose("user", g.users != nil, "each run has its own user, with the capability to read all files",
			"scripts run as the host's user"),
	}
}

func (g *guard) noNetwork() string {
	if g.landlock >= 4 {
		return "TCP is refused by Landlock; UDP and Unix sockets are not"
	}
	return "scripts reach the network"
}
