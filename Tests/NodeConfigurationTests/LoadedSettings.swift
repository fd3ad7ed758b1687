import Harness
import NodeConfiguration

/// Resolves settings from these sources, with the file named `n.yaml`.
func resolve(
    flags: [String: [String]] = [:], environment: [String: String] = [:], file: String? = nil
) throws(ConfigurationErrors) -> Configuration {
    try Configuration.check(
        flags: flags, environment: environment, file: file.map { ("n.yaml", $0) })
}

/// The errors of the same, as lines.
func faults(
    _ file: String? = nil, flags: [String: [String]] = [:], environment: [String: String] = [:]
) -> [String] {
    do throws(ConfigurationErrors) {
        _ = try resolve(flags: flags, environment: environment, file: file)
        return []
    } catch {
        return error.lines
    }
}

/// Loads settings with a file of this text, whose path `flags` may name.
///
/// Without a text the file does not exist. The lines are the errors, with `PATH` for the path.
func loadSettings(
    _ text: String?, flags: (_ path: String) -> [String: [String]]
) throws -> (configuration: Configuration?, lines: [String]) {
    try withTemporaryFile(text) { path in
        let sources = ConfigurationSources(flags: flags(path), environment: [:])
        do throws(ConfigurationErrors) {
            return (try sources.load(), [])
        } catch {
            return (nil, error.lines.map { $0.replacing(path, with: "PATH") })
        }
    }
}
