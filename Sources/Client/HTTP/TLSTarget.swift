import Glibc
import Ground
import Telemetry
import Wire

/// What a node is trusted by in an exchange over TLS.
struct TLSTarget: Sendable {
    /// The trusted issuers.
    let context: TLSClientContext
    /// The name or address that the certificate must have, sent as server name.
    let host: TLSServerName

    /// Loads the trusted issuers.
    ///
    /// - Parameters:
    ///   - host: the name or address that the certificate must have.
    ///   - file: the path of a file with further issuers; `nil` for those of the system alone.
    /// - Throws: the reason why the file cannot be used.
    init(_ host: TLSServerName, issuers file: String?) throws(CommandError) {
        var settings = TLSClientSettings(protocols: [.http11])
        do throws(FileReader.ReadError) {
            settings.issuersPEM = try file.map { path throws(FileReader.ReadError) in
                try FileReader.readRegularFile(path)
            }
        } catch {
            throw Self.unusable(file ?? "", error.reason)
        }
        do throws(TLSSetupError) {
            context = try TLSClientContext(settings)
        } catch {
            throw Self.unusable(file ?? "", error.message)
        }
        self.host = host
    }

    /// Returns the error for a file that cannot be used.
    private static func unusable(_ path: String, _ reason: String) -> CommandError {
        CommandError(
            .misconfigured,
            "--ca: \(path.quoted(limit: 4096)) cannot be used: \(reason); allowed: a file with "
                + "certificates in PEM")
    }
}

extension TLSServerName {
    /// Parses a host name or an address, optionally with a port after it; `nil` for anything else.
    init?(host text: some StringProtocol) {
        guard let parts = HostPort(String(text)) else { return nil }
        if let address = parts.address {
            self = .address(address)
        } else {
            guard let name = DomainName.canonical(parts.host[...]) else { return nil }
            self = .name(name)
        }
    }
}

extension TLSFailure {
    /// The explanation for the operator of a command, with what to do, as a clause.
    var commandText: String {
        var text = message(naming: "the node")
        if text.hasSuffix(".") { text.removeLast() }
        return text + advice
    }

    /// What the operator can do, after the explanation; empty if nothing is known.
    private var advice: String {
        switch cause {
        case .selfSigned, .unknownIssuer: "; --ca names a file with the issuer to trust"
        case .wrongHost: "; --server-name names the host to request"
        case .expired: "; renew it, and send the node SIGHUP"
        case .notYetValid: "; compare the clocks of both machines"
        case .notTLS: "; http:// requests clear text"
        default: ""
        }
    }
}
