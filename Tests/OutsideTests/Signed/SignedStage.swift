import Foundation
import Harness
import Testing

/// An origin, and a node with keys to which the origin is the signed site `a.example`.
final class SignedStage {
    static let site = "a.example"
    static let old = "0123456789abcdef0123456789abcdef"
    static let new = "fedcba9876543210fedcba9876543210"

    let origin: ScriptedOrigin
    let node: NodeProcess
    let folder: TemporaryFolder
    private var reloads = 0

    /// Starts the node with ``old`` as its first key unless `keys` says otherwise; `nil` means no
    /// keys.
    init(
        keys: String? = SignedStage.old, site lines: String = "", flags: [String] = []
    ) throws {
        origin = try ScriptedOrigin()
        folder = try TemporaryFolder()
        let settings = """
            sites:
              \(Self.site):
                origin: \(origin.url(""))
                signed: \(keys == nil ? "off" : "on")
            \(lines)
            """
        let file = try folder.write(settings, to: "nuthatch.yaml")
        var own = ["--config", file.path, "--allow-origin", "*"]
        if let keys { own += ["--signing-key-file", try folder.write(keys, to: "keys").path] }
        node = try NodeProcess(own + flags)
    }

    deinit { node.kill() }

    /// Returns the output of `nuthatch sign` with `secret` as its first key.
    func sign(_ arguments: String..., by secret: String = SignedStage.old) throws -> String {
        try sign(arguments, by: secret)
    }

    func sign(_ arguments: [String], by secret: String = SignedStage.old) throws -> String {
        let file = try folder.write(secret, to: "signer")
        let result = try NodeProcess.run(["sign", "--signing-key-file", file.path] + arguments)
        try #require(result.status == 0, "\(result.errors)")
        return String(decoding: result.output, as: UTF8.self).trimmingCharacters(in: .newlines)
    }

    func getSite(_ target: String, method: String = "GET") throws -> Response {
        try node.get(target, method: method, host: Self.site)
    }

    /// Makes the node reload its key file with these `keys`.
    func change(keys: String) throws {
        try Data(keys.utf8).write(
            to: folder.appending(path: "keys"), options: .atomic)
        reloads += 1
        node.hangUp()
        let isDone = Deadline.seconds(30).waitUntil {
            node.lines.count { $0.contains("settings reloaded") } >= reloads
        }
        try #require(isDone, "\(node.output)")
    }

    func refused(_ reason: String) -> Double? {
        node.metric("nuthatch_signatures_refused_total{reason=\"\(reason)\"}")
    }
}

/// Expects that the response is a problem document of this type.
func expectProblem(
    _ response: Response, _ status: Int, named name: String,
    at location: SourceLocation = #_sourceLocation
) {
    expectProblem(response, status, name, at: location)
    #expect(
        response.text.contains("urn:nuthatch:problem:\(name)\""), "\(response)",
        sourceLocation: location)
}
