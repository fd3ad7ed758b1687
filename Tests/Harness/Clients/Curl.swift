package import Foundation

/// A configuration of the `curl` program, which requests one URL per run.
package struct Curl: Sendable {
    /// The result of one run of curl.
    package struct TransferResult: Sendable {
        /// The exit status: 0 if curl accepts the response as complete; `nil` if it had to be
        /// killed.
        package var exitStatus: Int?
        /// The HTTP version: `1.1` or `2`.
        package var version = ""
        /// The status code; 0 if no head arrived.
        package var status = 0
        /// The field lines of the header, followed by those of the trailers.
        package var fields = HeaderFields()
        /// The status codes of the preceding interim responses.
        package var interim: [Int] = []
        /// The body.
        package var body = Data()
        /// The text of standard error.
        package var errors = ""
    }

    /// Host names that resolve to 127.0.0.1 on every port.
    package var hosts: [String] = []
    /// The PEM file with the trusted issuers.
    package var authority: String?
    /// Options of every run.
    package var options: [String] = []

    /// Creates a curl that trusts no issuer.
    package init() {}

    /// Creates a curl that trusts an authority and resolves the hosts to 127.0.0.1.
    package init(trusting authority: TestAuthority, hosts: [String]) {
        self.authority = authority.file
        self.hosts = hosts
    }

    /// Returns the complete command line after the program's name.
    package func arguments(_ more: [String]) -> [String] {
        let trusted = authority.map { ["--cacert", $0] } ?? []
        let connect = hosts.flatMap { ["--connect-to", "\($0)::127.0.0.1:"] }
        return ["--silent", "--show-error", "--max-time", "60"] + trusted + connect + options + more
    }

    /// Runs curl to its end.
    ///
    /// - Parameter more: The URL and further options.
    /// - Returns: The result of the run.
    /// - Throws: `NotFound` if there is no curl.
    package func callAsFunction(_ more: String...) throws -> TransferResult {
        try run(more)
    }

    /// Runs curl to its end with a list of arguments.
    package func run(_ more: [String]) throws -> TransferResult {
        try start(more).wait()
    }

    /// Starts curl, to wait for it later.
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

    /// A running curl.
    package final class Transfer: Sendable {
        private let program: Program
        private let folder: TemporaryFolder

        init(program: Program, folder: TemporaryFolder) {
            self.program = program
            self.folder = folder
        }

        /// Body bytes received so far.
        package var bodyByteCount: Int { program.output.count }

        /// True while curl runs.
        package var isRunning: Bool { program.isRunning }

        /// Sends a signal to curl.
        package func signal(_ number: Int32) { program.signal(number) }

        /// Waits for curl to end and returns its result.
        package func wait(seconds: Double = 90) -> TransferResult {
            var response = TransferResult()
            response.exitStatus = program.wait(seconds: seconds)
            program.kill()
            response.body = program.output
            let errors = program.errors
            let lines = errors.split(separator: "\n", omittingEmptySubsequences: false)
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
    /// The first value of a field.
    package subscript(name: String) -> String? { fields[name] }

    /// The body as text.
    package var text: String { String(decoding: body, as: UTF8.self) }

    /// Parses the output of `--dump-header`: consecutive heads, then trailers.
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
    /// A one-line summary without the body.
    package var description: String {
        let lines = fields.lines.map { "\($0.name): \($0.value)" }.joined(separator: ", ")
        let ended = exitStatus.map { "exit \($0)" } ?? "killed"
        return "HTTP/\(version) \(status) [\(lines)] \(body.count) bytes, \(ended) \(errors)"
    }
}
