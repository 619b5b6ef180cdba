package guest

// root is where data and work are. In a WASI module Go takes the first folder that the
// host opened for the working directory unless PWD says otherwise, so a relative path
// would begin somewhere else with every host.
const root = "/"
