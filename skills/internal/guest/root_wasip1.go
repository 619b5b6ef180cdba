package guest

// Root is put before data/… and work/… to open a file. In a WASI module Go takes
// the first preopened folder for the working directory unless PWD says otherwise,
// so a relative path would begin somewhere else with every host.
const Root = "/"
