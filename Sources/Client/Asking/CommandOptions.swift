import Admin
import Ground
import Telemetry

/// Whom an operator asks, and how.
package struct CommandOptions: Sendable {
    /// Settings of the node of this machine.
    package var sources: ConfigurationSources
    /// Admin ports as `HOST:PORT`; none for the node of this machine.
    package var nodes: [String]
    /// Nil for what settings and environment say.
    package var tokenFile: String?
    /// For each answer, as the operator writes it.
    package var timeout: String
    /// Programs read what is printed.
    package var isJSON: Bool

    package init(
        sources: ConfigurationSources, nodes: [String] = [], tokenFile: String? = nil,
        timeout: String = "3s", isJSON: Bool = false
    ) {
        self.sources = sources
        self.nodes = nodes
        self.tokenFile = tokenFile
        self.timeout = timeout
        self.isJSON = isJSON
    }

    /// The variables beside the settings.
    static let (nodeVariable, tokenVariable) = ("NUTHATCH_NODE", "NUTHATCH_TOKEN_FILE")
    /// Where nodes are asked if nothing else is said.
    static let adminPort: UInt16 = 8081

    /// Those who are to be asked, one at least.
    func clients() throws(CommandFault) -> [NodeClient] {
        let limit = try limit()
        var named = nodes
        // A flag beats the environment.
        if named.isEmpty, !sources.hasFlag(.adminListen) {
            named = sources.words(ofVariable: Self.nodeVariable)
        }
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
        switch try faulting(sources.operatorPlace) {
        case .address(let address, let tokenFile):
            var token = try givenToken()
            if token == nil, let tokenFile { token = try Self.strongestToken(tokenFile) }
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
        let path = tokenFile ?? sources.words(ofVariable: Self.tokenVariable).first
        guard let path else { return nil }
        do throws(ConfigurationError) {
            if let word = try Self.word(in: path) { return word }
            return try ConfigurationSources.adminTokens(path).max { $0.role < $1.role }?.token
        } catch {
            let place = tokenFile == nil ? Self.tokenVariable : "--token-file"
            let why =
                switch error {
                case .unreadableFile(_, let reason), .adminTokens(_, let reason): reason
                default: error.description
                }
            throw CommandFault(
                .misconfigured,
                "\(place): \(path.quoted(limit: 4096)) cannot be used: \(why); allowed: a token "
                    + "alone, or \(AdminTokens.allowed)")
        }
    }

    /// What the settings of this machine's node say to be proof; another one of its cluster may
    /// have the same.
    private func ownToken() throws(CommandFault) -> [UInt8]? {
        guard let path = try faulting(sources.adminTokenFile) else { return nil }
        return try Self.strongestToken(path)
    }

    /// The token that a file has alone; nil if it has more than one word.
    private static func word(in path: String) throws(ConfigurationError) -> [UInt8]? {
        let bytes = try ConfigurationSources.read(path)
        let words = bytes.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        guard words.count == 1, words[0].allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        return Array(words[0])
    }

    /// The token in a node's file that is good for most.
    private static func strongestToken(_ path: String) throws(CommandFault) -> [UInt8]? {
        do throws(ConfigurationError) {
            return try ConfigurationSources.adminTokens(path).max { $0.role < $1.role }?.token
        } catch {
            throw CommandFault(.misconfigured, error.description)
        }
    }

    /// What the settings say, where only some of them matter.
    func faulting<Value>(
        _ read: () throws(ConfigurationFaults) -> Value
    ) throws(CommandFault) -> Value {
        do throws(ConfigurationFaults) {
            return try read()
        } catch {
            throw CommandFault(.misconfigured, error.first.description)
        }
    }
}
