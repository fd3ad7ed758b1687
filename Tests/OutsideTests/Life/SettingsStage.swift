import Foundation
import Harness
import Testing

/// An origin, and a node whose settings are in a file.
final class SettingsStage {
    let origin: ScriptedOrigin
    let node: NodeProcess
    let path: String
    private let folder: TemporaryFolder
    private var reloads = 0

    /// The node may fetch from loopback only if `text` says so.
    init(_ text: String, _ flags: String..., environment: [String: String] = [:]) throws {
        origin = try ScriptedOrigin()
        folder = try TemporaryFolder()
        path = try folder.write(text, to: "nuthatch.yaml").path
        node = try NodeProcess(
            ["--config", path] + flags, environment: environment, allowsLoopback: false)
    }

    deinit { node.kill() }

    /// Has the node read this file; the line in which it says what has become of that.
    ///
    /// The text is nil for no file.
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

    /// Has the node read this file, which must be good.
    func change(_ text: String, at location: SourceLocation = #_sourceLocation) throws {
        let line = try reload(text, at: location)
        #expect(line.contains("settings reloaded"), "\(line)", sourceLocation: location)
    }

    func target(_ path: String) -> String { ImageRequestTarget.forURL(origin.url(path)) }

    func get(_ path: String, fields: [String] = []) throws -> Response {
        try node.get(target(path), fields: fields)
    }
}

/// The line without which a node of a ``SettingsStage`` fetches nothing from its origin.
let opened = "allow-private-origin: 127.0.0.0/8\n"
