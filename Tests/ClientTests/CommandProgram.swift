import Harness

/// Runs the built `nuthatch` to its end, as an operator would.
func runNuthatch(
    _ arguments: [String], environment: [String: String] = [:]
) throws -> ProgramResult {
    try Program.run(try NodeProcess.built("nuthatch"), arguments, environment: environment)
}
