import Foundation
import Harness
import Testing

/// An origin, and a node with its configuration in a file.
final class SettingsStage {
    let origin: ScriptedOrigin
    let node: NodeProcess
    let path: String
    private let folder: TemporaryFolder
    private var reloads = 0

    /// Starts the node, which may fetch from loopback only if `text` permits it.
    init(_ text: String, _ flags: String..., environment: [String: String] = [:]) throws {
        origin = try ScriptedOrigin()
        folder = try TemporaryFolder()
        path = try folder.write(text, to: "nuthatch.yaml").path
        node = try NodeProcess(
            ["--config", path] + flags, environment: environment, allowsLoopback: false)
    }

    deinit { node.kill() }

    /// Makes the node reload a file with this text, and returns the log line with the outcome.
    ///
    /// With `nil` there is no file.
    @discardableResult
    func reload(_ text: String?, at location: SourceLocation = #_sourceLocation) throws -> String {
        try reload(bytes: text.map { Data($0.utf8) }, at: location)
    }

    @discardableResult
    func reload(
        bytes: Data?, at location: SourceLocation = #_sourceLocation
    ) throws -> String {
        if let bytes {
            try bytes.write(to: URL(fileURLWithPath: path), options: .atomic)
        } else {
            try FileManager.default.removeItem(atPath: path)
        }
        node.hangUp()
        reloads += 1
        var lines: [String] = []
        let isDone = Deadline.seconds(30).waitUntil {
            lines = node.lines.filter {
                $0.contains("settings reloaded") || $0.contains("settings not reloaded")
            }
            return lines.count >= reloads
        }
        try #require(isDone, "\(node.output)", sourceLocation: location)
        return lines[reloads - 1]
    }

    /// Makes the node reload a file with this text, which must be valid.
    func change(_ text: String, at location: SourceLocation = #_sourceLocation) throws {
        let line = try reload(text, at: location)
        #expect(line.contains("settings reloaded"), "\(line)", sourceLocation: location)
    }

    func target(_ path: String) -> String { ImageRequestTarget.forURL(origin.url(path)) }

    func get(_ path: String, fields: [String] = []) throws -> Response {
        try node.get(target(path), fields: fields)
    }
}

/// The configuration line that permits a node of a ``SettingsStage`` to fetch from its origin.
let opened = "allow-private-origin: 127.0.0.0/8\n"
