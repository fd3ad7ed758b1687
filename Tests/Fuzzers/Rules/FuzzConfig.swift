import Ground
import NodeConfiguration
import Telemetry

/// A file of settings with arbitrary bytes.
///
/// Invariants: there is a configuration or at least one fault, and each fault is one line suitable
/// for a log; the listing of the configuration, read as a file again, gives the same list; a node
/// that runs with the defaults either adopts the configuration or states the reason in a line.
func fuzzConfig(_ input: [UInt8]) {
    guard let configuration = resolve(input) else { return }
    let listing = configuration.listing
    guard let again = resolve(Array(listing.joined(separator: "\n").utf8)) else {
        preconditionFailure("refused: \(listing)")
    }
    precondition(settings(again.listing) == settings(listing), "\(again.listing), \(listing)")
    for running in [defaults, configuration] {
        do {
            let (kept, change) = try running.changed(to: configuration)
            let rest = try kept.changed(to: configuration).change
            precondition(rest.live.isEmpty && rest.awaitingRestart == change.awaitingRestart)
            for item in change.live + change.awaitingRestart { check(item.description) }
        } catch {
            for line in error.lines { check(line) }
        }
    }
}

private let defaults: Configuration = {
    guard let configuration = resolve([]) else { preconditionFailure("no default is valid") }
    return configuration
}()

private func resolve(_ bytes: [UInt8]) -> Configuration? {
    do {
        let text = try ConfigurationSources.text(of: bytes, in: "f")
        do {
            return try Configuration.check(flags: [:], environment: [:], file: ("f", text))
        } catch {
            for line in error.lines { check(line) }
        }
    } catch {
        check(error.description)
    }
    return nil
}

/// Returns the lines without the comments, which state their sources.
private func settings(_ listing: [String]) -> [String] {
    listing.map { line in
        line.split(separator: "  # ").dropLast().joined(separator: "  # ")
    }
}

private func check(_ line: String) {
    precondition(!line.isEmpty && line.utf8.count < 10_000, line)
    precondition(line.unicodeScalars.allSatisfy { !$0.isInvisible }, line)
}
