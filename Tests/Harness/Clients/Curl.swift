package import Foundation

/// The `curl` program, asked for one URL at a time.
package struct Curl: Sendable {
    /// What it got.
    package struct TransferResult: Sendable {
        /// Its exit status: 0 if it takes the answer for whole; nil if it had to be killed.
        package var exitStatus: Int?
        /// The version of HTTP: `1.1`, `2`.
        package var version = ""
        /// The status code; 0 if no head came.
        package var status = 0
        /// The field lines, and behind them those of the trailers.
        package var fields = HeaderFields()
        /// The status codes of interim answers before it.
        package var interim: [Int] = []
        /// The body.
        package var body = Data()
        /// What it said of its own accord.
        package var errors = ""
    }

    /// Names that are for 127.0.0.1, whatever the port.
    package var hosts: [String] = []
    /// The PEM file with the issuers it trusts.
    package var authority: String?
    /// What it is always given.
    package var options: [String] = []

    /// A curl that trusts nobody.
    package init() {}

    /// A curl that trusts an authority, and finds the hosts here.
    package init(trusting authority: TestAuthority, hosts: [String]) {
        self.authority = authority.file
        self.hosts = hosts
    }

    /// The whole command line behind the program's name.
    package func arguments(_ more: [String]) -> [String] {
        let trusted = authority.map { ["--cacert", $0] } ?? []
        let connect = hosts.flatMap { ["--connect-to", "\($0)::127.0.0.1:"] }
        return ["--silent", "--show-error", "--max-time", "60"] + trusted + connect + options + more
    }

    /// Runs it to its end.
    ///
    /// - Parameter more: What to ask, and how.
    /// - Returns: What it got.
    /// - Throws: That there is no curl.
    package func callAsFunction(_ more: String...) throws -> TransferResult {
        try run(more)
    }

    /// The same for a list.
    package func run(_ more: [String]) throws -> TransferResult {
        try start(more).wait()
    }

    /// Starts it, to wait for it later.
    package func start(_ more: [String]) throws -> Transfer {
        let folder = try TemporaryFolder()
        let head = folder.appending(path: "head")
        let program = try Program(
            try Program.find("curl"),
            arguments(
                [
                    "--dump-header", head.path, "--write-out", "%{stderr}\n%{http_version}",
                ] + more))
        return Transfer(program: program, folder: folder)
    }

    /// A curl under way.
    package final class Transfer: Sendable {
        private let program: Program
        private let folder: TemporaryFolder

        init(program: Program, folder: TemporaryFolder) {
            self.program = program
            self.folder = folder
        }

        /// Bytes of the body so far.
        package var bodyByteCount: Int { program.output.count }

        /// Whether it still runs.
        package var isRunning: Bool { program.isRunning }

        /// Sends it a signal.
        package func signal(_ number: Int32) { program.signal(number) }

        /// Waits for its end.
        package func wait(seconds: Double = 90) -> TransferResult {
            var response = TransferResult()
            response.exitStatus = program.wait(seconds: seconds)
            program.kill()
            response.body = program.output
            let said = program.errors
            let lines = said.split(separator: "\n", omittingEmptySubsequences: false)
            response.version = lines.last.map(String.init) ?? ""
            response.errors = lines.dropLast().joined(separator: "\n")
            let file = folder.appending(path: "head")
            let head = (try? String(contentsOf: file, encoding: .isoLatin1)) ?? ""
            response.read(head)
            return response
        }
    }
}

extension Curl.TransferResult {
    /// A field's first value.
    package subscript(name: String) -> String? { fields[name] }

    /// The body as text.
    package var text: String { String(decoding: body, as: UTF8.self) }

    /// Reads what `--dump-header` wrote: one head after the other, and trailers.
    fileprivate mutating func read(_ head: String) {
        for line in head.components(separatedByCRLF: ()) {
            if line.hasPrefix("HTTP/"), let status = line.split(separator: " ").dropFirst().first {
                if (100..<200).contains(self.status) { interim.append(self.status) }
                self.status = Int(status) ?? 0
                fields = HeaderFields()
            } else if let field = HeaderFields.parse(line) {
                fields.lines.append(field)
            }
        }
    }
}

extension Curl.TransferResult: CustomStringConvertible {
    /// What it is in a line, without its body.
    package var description: String {
        let lines = fields.lines.map { "\($0.name): \($0.value)" }.joined(separator: ", ")
        let ended = exitStatus.map { "exit \($0)" } ?? "killed"
        return "HTTP/\(version) \(status) [\(lines)] \(body.count) bytes, \(ended) \(errors)"
    }
}
