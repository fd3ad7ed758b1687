import Harness
import Node

/// What loading the settings gives beside a file of this text, whose path `flags` may name.
///
/// Without a text there is no such file. The lines are the faults, in which the path is `PATH`.
func loadSettings(
    _ text: String?, flags: (_ path: String) -> [String: [String]]
) throws -> (configuration: Configuration?, lines: [String]) {
    try withTemporaryFile(text) { path in
        let sources = ConfigurationSources(flags: flags(path), environment: [:])
        do throws(ConfigurationFaults) {
            return (try sources.load(), [])
        } catch {
            return (nil, error.lines.map { $0.replacing(path, with: "PATH") })
        }
    }
}
