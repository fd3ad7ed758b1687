import FuzzSupport
import Ground
import NodeConfirmations
import Telemetry

/// A file of settings, as an operator writes it, with whatever bytes.
///
/// Held: there is a configuration or at least one fault, and each fault is one line that a log can
/// take; what the configuration is listed as, read as a file again, gives the same list; a node
/// that runs with the defaults either takes the configuration over or says in a line why not.
private func fuzz(_ input: [UInt8]) {
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

/// The program's start.
@c(fuzz_config_main)
public func start(_ count: CInt, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    unsafe runFuzzer(count, arguments, fuzz)
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

/// Without the comments, which say where each comes from.
private func settings(_ listing: [String]) -> [String] {
    listing.map { line in
        line.split(separator: "  # ").dropLast().joined(separator: "  # ")
    }
}

private func check(_ line: String) {
    precondition(!line.isEmpty && line.utf8.count < 10_000, line)
    precondition(line.unicodeScalars.allSatisfy { !$0.isInvisible }, line)
}
