package import Admin
import FoundationEssentials
import Glibc
import Ground
import Telemetry

/// The nodes that a command sends requests to, and the options for it.
package struct CommandOptions: Sendable {
    /// The settings of this machine's node.
    package var localNode: LocalNode
    /// The admin ports as `HOST:PORT`; empty for the nodes of the environment, or else for this
    /// machine's node.
    package var nodes: [String]
    /// The path of the file with the token; `nil` for that of the environment or the settings.
    package var tokenFile: String?
    /// The time limit for each response, as the operator wrote it.
    package var timeout: String
    /// True if the output is JSON for programs.
    package var isJSON: Bool
    /// The environment of this process.
    let environment: [String: String]

    /// Creates options with this process's environment.
    ///
    /// - Parameters:
    ///   - ownNode: the settings of this machine's node.
    ///   - nodes: the admin ports as `HOST:PORT`.
    ///   - tokenFile: the path of the file with the token; `nil` for the default.
    ///   - timeout: the time limit for each response, as the operator wrote it.
    ///   - isJSON: true for JSON output.
    package init(
        ownNode: LocalNode, nodes: [String] = [], tokenFile: String? = nil,
        timeout: String = "3s", isJSON: Bool = false
    ) {
        self.localNode = ownNode
        self.nodes = nodes
        self.tokenFile = tokenFile
        self.timeout = timeout
        self.isJSON = isJSON
        environment = ProcessInfo.processInfo.environment
    }

    /// The default address of the admin port.
    static let adminPort: UInt16 = 8081

    /// Returns the words in an environment variable, separated by white space.
    private func words(of variable: ClientEnvironmentVariable) -> [String] {
        (environment[variable.rawValue] ?? "").split(whereSeparator: \.isWhitespace)
            .map(String.init)
    }

    /// Returns the clients of the nodes that flags name, else of those that the environment names,
    /// else of this machine's node; at least one.
    ///
    /// A flag for `admin-listen` precedes the environment.
    func clients() throws(CommandError) -> [NodeClient] {
        let limit = try timeoutInterval()
        var named = nodes
        // A flag takes precedence over the environment.
        if named.isEmpty, !localNode.hasAdminFlag { named = words(of: .node) }
        guard !named.isEmpty else {
            return [try localClient(limit)]
        }
        var token = try explicitToken()
        if token == nil { token = try localToken() }
        var clients: [NodeClient] = []
        for name in named {
            clients.append(
                NodeClient(try endpoint(name), token: token, timeout: limit, timeoutText: timeout))
        }
        return clients
    }

    /// Returns the client of the only node; more than one is an error.
    func client() throws(CommandError) -> NodeClient {
        let clients = try clients()
        guard clients.count == 1 else {
            throw CommandError(
                .usageError,
                "this command queries one node; \(clients.count) are given (--node, NUTHATCH_NODE)")
        }
        return clients[0]
    }

    /// Returns the time limit for each response.
    func timeoutInterval() throws(CommandError) -> Interval {
        try Self.duration(timeout, "--timeout")
    }

    /// Parses a duration above zero; `flag` names the option in the error.
    static func duration(_ text: String, _ flag: String) throws(CommandError) -> Interval {
        guard let limit = DurationText.parse(text), limit > .zero else {
            throw CommandError(
                .usageError, "\(flag): \(text.quoted()) is not a duration, e.g. 3s")
        }
        return limit
    }

    /// Parses the address of a node.
    private func endpoint(_ name: String) throws(CommandError) -> NodeEndpoint {
        if name.hasPrefix("https://") {
            throw CommandError(
                .usageError,
                "--node: \(name.quoted()): TLS is not supported; use curl with a "
                    + "certificate")
        }
        guard let place = NodeEndpoint(name, defaultPort: Self.adminPort) else {
            throw CommandError(
                .usageError, "--node: \(name.quoted()) is not HOST:PORT, e.g. 10.0.0.7:8081")
        }
        return place
    }

    /// Returns the client of this machine's node.
    ///
    /// - Throws: the reason if its admin port cannot be used: closed, with client certificates, or
    ///   with port 0.
    private func localClient(_ limit: Interval) throws(CommandError) -> NodeClient {
        switch try Self.setting(localNode.adminPort) {
        case .address(let address, let tokenFile):
            var token = try explicitToken()
            if token == nil, let tokenFile { token = try Self.localToken(in: tokenFile) }
            return NodeClient(
                NodeEndpoint(address.reachable), token: token, timeout: limit, timeoutText: timeout)
        case .disabled:
            throw CommandError(.misconfigured, "admin-listen is off, so the node cannot be queried")
        case .requiresCertificate:
            throw CommandError(
                .misconfigured,
                "the admin port requires a client certificate (client-ca), which this command "
                    + "does not support; use curl")
        case .ephemeral:
            throw CommandError(
                .misconfigured,
                "the kernel chooses the admin port (port 0); set admin-listen to the port in the "
                    + "node's log")
        }
    }

    // MARK: Tokens

    /// Returns the token in the file that a flag or the environment names; `nil` if neither does.
    private func explicitToken() throws(CommandError) -> [UInt8]? {
        let path = tokenFile ?? words(of: .tokenFile).first
        guard let path else { return nil }
        let name = tokenFile == nil ? ClientEnvironmentVariable.tokenFile.rawValue : "--token-file"
        return try Self.token(in: path, source: name, allowsBareToken: true)
    }

    /// Returns the token in the settings of this machine's node, which other nodes of its cluster
    /// may share.
    private func localToken() throws(CommandError) -> [UInt8]? {
        guard let path = try Self.setting(localNode.adminTokenFile) else { return nil }
        return try Self.localToken(in: path)
    }

    /// Returns the token in a file of this machine's node.
    private static func localToken(in path: String) throws(CommandError) -> [UInt8]? {
        try token(in: path, source: "setting admin-token-file", allowsBareToken: false)
    }

    /// Returns the token with the most powerful role in a file.
    ///
    /// `name` names the file in errors. If `allowsBareToken`, a file with a single word may be a
    /// bare token.
    private static func token(
        in path: String, source name: String, allowsBareToken: Bool
    ) throws(CommandError) -> [UInt8]? {
        func fault(_ reason: String) -> CommandError {
            CommandError(
                .misconfigured,
                "\(name): \(path.quoted(limit: 4096)) cannot be used: \(reason); allowed: "
                    + (allowsBareToken ? "a token alone, or " : "") + AdminTokenFile.allowedFormat)
        }
        let bytes: [UInt8]
        do throws(FileReader.ReadError) {
            bytes = try FileReader.readRegularFile(path)
        } catch {
            throw fault(error.reason)
        }
        if allowsBareToken, let word = bareToken(in: bytes) { return word }
        do throws(AdminTokenFile.ParseError) {
            return try AdminTokenFile.entries(of: bytes).max { $0.role < $1.role }?.token
        } catch {
            throw fault(error.message)
        }
    }

    /// Returns the token of a file with a single word; `nil` if it has more.
    private static func bareToken(in bytes: [UInt8]) -> [UInt8]? {
        let words = bytes.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        guard words.count == 1, words[0].allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        return Array(words[0])
    }

    /// Returns the value of `part`; its fault ends the command as ``CommandOutcome/misconfigured``.
    static func setting<Value>(
        _ part: Result<Value, LocalNode.SettingError>
    ) throws(CommandError) -> Value {
        switch part {
        case .success(let value): return value
        case .failure(let fault): throw CommandError(.misconfigured, fault.text)
        }
    }
}

/// Functions that read whole files.
enum FileReader {
    /// The failure to read a file.
    struct ReadError: Error {
        /// The reason as one clause.
        let reason: String

        /// Creates a failure with a reason.
        init(_ reason: String) {
            self.reason = reason
        }

        /// Creates a failure from an error number.
        init(_ number: CInt) {
            switch number {
            case ENOENT, ENOTDIR: reason = "the file does not exist"
            case EACCES, EPERM: reason = "permission is denied"
            default: reason = unsafe String(cString: strerror(number))
            }
        }
    }

    /// The largest file in bytes.
    private static let bytesMax = 1 << 20

    /// Returns the contents of a regular file of at most 1 MiB; other files are refused, as a node
    /// does for its own files.
    static func readRegularFile(_ path: String) throws(ReadError) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw ReadError(errno) }
        defer { close(descriptor) }
        var facts = stat()
        guard unsafe fstat(descriptor, &facts) == 0 else { throw ReadError(errno) }
        guard facts.st_mode & S_IFMT == S_IFREG else {
            throw ReadError("it is not a regular file")
        }
        guard let bytes = readToEnd(of: descriptor, bytesMax: bytesMax) else {
            throw ReadError(errno)
        }
        guard bytes.count <= bytesMax else {
            throw ReadError("it is larger than \(bytesMax >> 20) MiB")
        }
        return bytes
    }

    /// Returns everything up to the end of `descriptor`, or until there are more than `bytesMax`
    /// bytes; `nil` with `errno` set if it cannot be read.
    static func readToEnd(of descriptor: CInt, bytesMax: Int = .max) -> [UInt8]? {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        while bytes.count <= bytesMax {
            let count = unsafe piece.withUnsafeMutableBytes { room in
                unsafe read(descriptor, room.baseAddress, room.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            guard count > 0 else { break }
            bytes += piece[..<count]
        }
        return bytes
    }
}
