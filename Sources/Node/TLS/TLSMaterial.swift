import Ground
import Telemetry
package import Wire

/// What the files of certificates and keys come to: ready to be used, because a file that is of no
/// use must be found before anything changes.
package struct TLSMaterial: Sendable {
    /// For clients; nil without certificates.
    package private(set) var server: TLSServerContext?
    /// For operators; nil if the admin port is in clear text.
    package private(set) var admin: TLSServerContext?

    /// No TLS.
    package init() {}

    /// Reads the files that `configuration` names.
    init(of configuration: TLSConfiguration) throws(ConfigurationError) {
        let files = zip(configuration.certificateFiles, configuration.keyFiles)
        var identities: [TLSIdentity] = []
        for (certificate, key) in files {
            identities.append(
                TLSIdentity(
                    chainPEM: try Self.read(certificate, of: .tlsCertificate),
                    keyPEM: try Self.read(key, of: .tlsKey), ocspDER: Self.staple(certificate)))
        }
        guard !identities.isEmpty else { return }
        var settings = TLSServerSettings(
            identities: identities, minimumVersion: configuration.minimumVersion)
        server = try Self.context(settings, of: configuration)
        guard let file = configuration.clientCAFile else { return }
        settings.clientCAPEM = try Self.read(file, of: .clientCA)
        settings.protocols = [.http11]
        admin = try Self.context(settings, of: configuration)
    }

    private static func read(
        _ file: String, of name: SettingName
    ) throws(ConfigurationError) -> [UInt8] {
        do throws(ConfigurationError) {
            return try ConfigurationSources.read(file)
        } catch {
            guard case .unreadableFile(_, let reason) = error else { throw error }
            throw .tls(name, file: file, reason: reason)
        }
    }

    /// What the issuer says of a certificate lies beside it, if it is there.
    private static func staple(_ certificate: String) -> [UInt8]? {
        try? ConfigurationSources.read(certificate + ".ocsp")
    }

    private static func context(
        _ settings: TLSServerSettings, of configuration: TLSConfiguration
    ) throws(ConfigurationError) -> TLSServerContext {
        do throws(TLSSetupError) {
            return try TLSServerContext(settings)
        } catch {
            switch error {
            case .certificate(let identity, let reason), .refused(let identity, let reason):
                throw .tls(
                    .tlsCertificate, file: configuration.certificateFiles[identity],
                    reason: reason)
            case .key(let identity, let reason):
                throw .tls(.tlsKey, file: configuration.keyFiles[identity], reason: reason)
            case .issuers(let reason):
                throw .tls(.clientCA, file: configuration.clientCAFile ?? "", reason: reason)
            default:
                throw .tls(
                    .tlsCertificate, file: configuration.certificateFiles.first ?? "",
                    reason: error.sentence)
            }
        }
    }
}
