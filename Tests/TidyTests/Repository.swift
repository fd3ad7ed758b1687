import Foundation

/// The working copy that this test was built from.
struct Repository {
    /// A Swift file under Sources or Tests.
    struct File: Sendable {
        /// From the top of the repository.
        let path: String
        let text: SwiftText
    }

    let top: URL

    init() {
        top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
    }

    /// The Swift files under a folder, by path.
    func swiftFiles(under folder: String) throws -> [File] {
        try Self.files.get().filter { $0.path.hasPrefix(folder + "/") }
    }

    /// Every Swift file, read once.
    private static let files = Result {
        try ["Sources", "Tests"].flatMap { try Repository().read($0) }
    }

    private func read(_ folder: String) throws -> [File] {
        let root = top.appending(path: folder)
        let paths =
            FileManager.default.enumerator(atPath: root.path)?
            .compactMap { $0 as? String } ?? []
        return try paths.filter { $0.hasSuffix(".swift") }.sorted().map { path in
            let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
            return File(path: folder + "/" + path, text: SwiftText(text))
        }
    }

    /// README, then the pages of the guide, by path.
    func pages() throws -> [MarkdownText] {
        let names = try FileManager.default.contentsOfDirectory(
            atPath: top.appending(path: GuideRule.folder).path)
        let guide = names.filter { $0.hasSuffix(".md") }.sorted()
        return try (["README.md"] + guide.map { "\(GuideRule.folder)/\($0)" }).map(page)
    }

    /// The anchors of a file or folder, none if it is no page; nil if it is not there.
    func anchors(of path: String) -> Set<String>? {
        guard FileManager.default.fileExists(atPath: top.appending(path: path).path) else {
            return nil
        }
        return path.hasSuffix(".md") ? try? page(path).anchors : []
    }

    private func page(_ path: String) throws -> MarkdownText {
        MarkdownText(path: path, try String(contentsOf: top.appending(path: path), encoding: .utf8))
    }

    /// What git tracks at the top; everything that lies there where git cannot tell.
    func topLevel() throws -> [String] {
        let tracked = try? run("git", ["ls-tree", "--name-only", "HEAD"])
        guard let tracked, tracked.status == 0 else {
            return try FileManager.default.contentsOfDirectory(atPath: top.path)
        }
        let staged = try run("git", ["diff", "--name-only", "--cached", "--diff-filter=A"])
        let names =
            tracked.lines
            + staged.lines.compactMap { line in
                line.split(separator: "/").first.map(String.init)
            }
        return names
    }

    /// The package as SwiftPM sees it.
    ///
    /// A scratch path of its own: the ordinary one is locked while the tests run.
    func package() throws -> ArrowRule.Package {
        let scratch = FileManager.default.temporaryDirectory
            .appending(path: "nuthatch-tidy-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: scratch) }
        let arguments = ["package", "--scratch-path", scratch.path, "dump-package"]
        let outcome = try run("swift", arguments)
        return try JSONDecoder().decode(ArrowRule.Package.self, from: outcome.output)
    }

    private struct Outcome {
        let status: Int32
        let output: Data

        var lines: [String] {
            String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    private func run(_ program: String, _ arguments: [String]) throws -> Outcome {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.currentDirectoryURL = top
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Outcome(status: process.terminationStatus, output: output)
    }
}
