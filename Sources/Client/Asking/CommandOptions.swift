package import Admin
import FoundationEssentials
import Ground
import Telemetry

/// Which nodes a command asks, and how.
package struct CommandOptions: Sendable {
    /// The node of this machine.
    package var ownNode: OwnNode
    /// Admin ports as `HOST:PORT`; none for the node of this machine.
    package var nodes: [String]
    /// Nil for what settings and environment say.
    package var tokenFile: String?
    /// For each answer, as the operator writes it.
    package var timeout: String
    /// Programs read what is printed.
    package var isJSON: Bool
    /// The environment of this process.
    let environment: [String: String]

    package init(
        ownNode: OwnNode, nodes: [String] = [], tokenFile: String? = nil,
        timeout: String = "3s", isJSON: Bool = false
    ) {
        self.ownNode = ownNode
        self.nodes = nodes
        self.tokenFile = tokenFile
        self.timeout = timeout
        self.isJSON = isJSON
        environment = ProcessInfo.processInfo.environment
    }

    /// Where nodes are asked if nothing else is said.
    static let adminPort: UInt16 = 8081

    /// What a variable of the environment says, cut at white space.
    private func words(of variable: ClientVariable) -> [String] {
        (environment[variable.rawValue] ?? "").split(whereSeparator: \.isWhitespace)
            .map(String.init)
    }

    /// Those who are to be asked, one at least.
    func clients() throws(CommandFault) -> [NodeClient] {
        let limit = try limit()
        var named = nodes
        // A flag beats the environment.
        if named.isEmpty, !ownNode.hasAdminFlag { named = words(of: .node) }
        guard !named.isEmpty else {
            return [try ownClient(limit)]
        }
        var token = try givenToken()
        if token == nil { token = try ownToken() }
        var clients: [NodeClient] = []
        for name in named {
            clients.append(
                NodeClient(try place(name), token: token, within: limit, as: timeout))
        }
        return clients
    }

    /// The one who is to be asked.
    func client() throws(CommandFault) -> NodeClient {
        let clients = try clients()
        guard clients.count == 1 else {
            throw CommandFault(
                .misused,
                "this asks one node, and \(clients.count) are named (--node, NUTHATCH_NODE)")
        }
        return clients[0]
    }

    func limit() throws(CommandFault) -> Interval { try Self.duration(timeout, "--timeout") }

    /// `text` as a length of time that is not nothing; `flag` is what gave it.
    static func duration(_ text: String, _ flag: String) throws(CommandFault) -> Interval {
        guard let limit = DurationText.parse(text), limit > .zero else {
            throw CommandFault(
                .misused, "\(flag): \(text.quoted()) is not a duration, e.g. 3s")
        }
        return limit
    }

    private func place(_ name: String) throws(CommandFault) -> AskedPlace {
        if name.hasPrefix("https://") {
            throw CommandFault(
                .misused,
                "--node: \(name.quoted()): TLS is not spoken here; ask with curl and a "
                    + "certificate")
        }
        guard let place = AskedPlace(name, defaultPort: Self.adminPort) else {
            throw CommandFault(
                .misused, "--node: \(name.quoted()) is no HOST:PORT, e.g. 10.0.0.7:8081")
        }
        return place
    }

    /// The node of this machine.
    private func ownClient(_ limit: Interval) throws(CommandFault) -> NodeClient {
        switch try said(ownNode.adminPort) {
        case .address(let address, let tokenFile):
            var token = try givenToken()
            if token == nil, let tokenFile { token = try Self.ownToken(in: tokenFile) }
            return NodeClient(
                AskedPlace(address.reachable), token: token, within: limit, as: timeout)
        case .off:
            throw CommandFault(.misconfigured, "admin-listen is off, so nobody can be asked")
        case .wantsCertificate:
            throw CommandFault(
                .misconfigured,
                "the admin port asks for a certificate (client-ca), and this command shows none; "
                    + "ask it with one, by curl")
        case .chosenByKernel:
            throw CommandFault(
                .misconfigured,
                "the kernel chooses the admin port (port 0); give admin-listen the one that the "
                    + "node's log names")
        }
    }

    // MARK: Tokens

    /// What the operator says to be proof; nil if nothing is said.
    private func givenToken() throws(CommandFault) -> [UInt8]? {
        let path = tokenFile ?? words(of: .tokenFile).first
        guard let path else { return nil }
        let name = tokenFile == nil ? ClientVariable.tokenFile.rawValue : "--token-file"
        return try Self.token(in: path, namedBy: name, mayBeAlone: true)
    }

    /// What the settings of this machine's node say to be proof; another one of its cluster may
    /// have the same.
    private func ownToken() throws(CommandFault) -> [UInt8]? {
        guard let path = try said(ownNode.adminTokenFile) else { return nil }
        return try Self.ownToken(in: path)
    }

    private static func ownToken(in path: String) throws(CommandFault) -> [UInt8]? {
        try token(in: path, namedBy: "setting admin-token-file", mayBeAlone: false)
    }

    /// The token in a file that is good for most.
    ///
    /// `name` is what names the file. A file that has one word and no more may be a token alone, if
    /// `mayBeAlone`.
    private static func token(
        in path: String, namedBy name: String, mayBeAlone: Bool
    ) throws(CommandFault) -> [UInt8]? {
        func fault(_ reason: String) -> CommandFault {
            CommandFault(
                .misconfigured,
                "\(name): \(path.quoted(limit: 4096)) cannot be used: \(reason); allowed: "
                    + (mayBeAlone ? "a token alone, or " : "") + AdminTokens.allowed)
        }
        let bytes: [UInt8]
        do throws(FileBytes.Unreadable) {
            bytes = try FileBytes.ofRegularFile(path)
        } catch {
            throw fault(error.reason)
        }
        if mayBeAlone, let word = word(in: bytes) { return word }
        do throws(AdminTokens.Fault) {
            return try AdminTokens.entries(of: bytes).max { $0.role < $1.role }?.token
        } catch {
            throw fault(error.sentence)
        }
    }

    /// The token that a file has alone; nil if it has more than one word.
    private static func word(in bytes: [UInt8]) -> [UInt8]? {
        let words = bytes.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        guard words.count == 1, words[0].allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        return Array(words[0])
    }

    /// A part of what the settings say of the node of this machine.
    func said<Value>(_ part: Result<Value, OwnNode.Fault>) throws(CommandFault) -> Value {
        switch part {
        case .success(let value): return value
        case .failure(let fault): throw CommandFault(.misconfigured, fault.text)
        }
    }
}
