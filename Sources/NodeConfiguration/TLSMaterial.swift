package import Ground
import HTTPRules
package import Origin
import Telemetry
package import Wire

/// The parsed certificates, keys and issuers, ready to use, so that a bad file is found before
/// anything changes.
package struct TLSMaterial: Sendable {
    /// The context for clients; `nil` without certificates.
    package private(set) var server: TLSServerContext?
    /// The context for operators; `nil` if the admin port uses clear text.
    package private(set) var admin: TLSServerContext?

    /// The trust in origins' certificates: the system's issuers and those of `origin-ca`; `nil`,
    /// for the system's alone, before files are read.
    package private(set) var origins: OriginTrustStore?
    /// The issuers and pins that are trusted for the origins of sites with settings of their own.
    package private(set) var sites: [SitePattern: OriginTrustStore] = [:]
    /// The certificates that are presented to clients, one for each file, and the issuers in
    /// `client-ca`.
    package private(set) var certificates: [LoadedCertificate] = []

    /// A certificate in a file that the configuration names.
    package struct LoadedCertificate: Hashable, Sendable {
        /// The name of the file.
        package let file: String
        /// True for an issuer of operators' certificates, false for one presented to clients.
        package let isIssuer: Bool
        /// The names and the validity.
        package let summary: CertificateSummary
    }

    /// Creates material without TLS.
    package init() {}

    /// Reads the files that `configuration` and its sites name.
    ///
    /// - Throws: the fault of a file that cannot be used.
    init(of configuration: Configuration) throws(ConfigurationError) {
        try readTrust(of: configuration)
        let files = zip(configuration.tlsCertificate, configuration.tlsKey)
        var identities: [TLSIdentity] = []
        for (certificate, key) in files {
            identities.append(
                TLSIdentity(
                    chainPEM: try Self.pem(Setting.tls.tlsCertificate, certificate).read(),
                    keyPEM: try Self.pem(Setting.tls.tlsKey, key).read(),
                    ocspDER: Self.staple(certificate)))
        }
        for (file, identity) in zip(configuration.tlsCertificate, identities) {
            // Only the first certificate of a file is the node's own.
            certificates += CertificateSummary.read(pem: identity.chainPEM).prefix(1).map {
                LoadedCertificate(file: file, isIssuer: false, summary: $0)
            }
        }
        guard !identities.isEmpty else { return }
        var settings = TLSServerSettings(
            identities: identities, minimumVersion: configuration.tlsMinimum)
        server = try Self.context(settings, of: configuration)
        guard let file = configuration.clientCA else { return }
        let issuers = try Self.pem(Setting.tls.clientCA, file).read()
        settings.clientCAPEM = issuers
        certificates += CertificateSummary.read(pem: issuers).map {
            LoadedCertificate(file: file, isIssuer: true, summary: $0)
        }
        settings.protocols = [.http11, .http10]
        admin = try Self.context(settings, of: configuration)
    }

    /// Reads the issuers and pins for origins.
    private mutating func readTrust(
        of configuration: Configuration
    ) throws(ConfigurationError) {
        var issuers: [UInt8] = []
        for file in configuration.originCA {
            let pem = try Self.pem(Setting.tls.originCA, file).read()
            // Each file alone, which tells which one is at fault.
            do throws(TLSSetupError) {
                _ = try OriginTrustStore(TLSClientSettings(trustsSystem: false, issuersPEM: pem))
            } catch {
                throw Self.pem(Setting.tls.originCA, file).error(Self.reason(error))
            }
            issuers += pem + [0x0A]
        }
        var settings = TLSClientSettings(
            issuersPEM: issuers.isEmpty ? nil : issuers,
            minimumVersion: configuration.originTLSMinimum,
            protocols: configuration.originHTTP2 ? [.http2, .http11] : [.http11])
        do throws(TLSSetupError) {
            origins = try OriginTrustStore(settings)
        } catch {
            throw Self.pem(Setting.tls.originCA, configuration.originCA.first ?? "")
                .error(Self.reason(error))
        }
        settings.trustsSystem = false
        for site in configuration.sites.sites {
            let pins = site.settings.originPins.compactMap { TLSPin($0) }
            guard site.settings.originCAFile != nil || !pins.isEmpty else { continue }
            settings.pins = pins
            settings.issuersPEM = try site.settings.originCAFile.map {
                file throws(ConfigurationError) in
                try ConfigurationSources.read(file) {
                    .siteTLS(site.pattern, SiteOption.all.originCA, file: file, reason: $0)
                }
            }
            do throws(TLSSetupError) {
                sites[site.pattern] = try OriginTrustStore(settings)
            } catch {
                throw .siteTLS(
                    site.pattern, SiteOption.all.originCA, file: site.settings.originCAFile ?? "",
                    reason: Self.reason(error))
            }
        }
    }

    /// Returns the reason of an error without its subject.
    private static func reason(_ error: TLSSetupError) -> String {
        if case .issuers(let reason) = error { reason } else { error.message }
    }

    /// Returns a file of certificates or keys that a setting names.
    private static func pem(_ key: SettingKey<some Sendable>, _ file: String) -> SettingFile {
        SettingFile(key, file, "a PEM file")
    }

    /// Returns the OCSP response beside a certificate's file, whose name has `.ocsp` appended;
    /// `nil` if it cannot be read.
    private static func staple(_ certificate: String) -> [UInt8]? {
        try? ConfigurationSources.read(certificate + ".ocsp")
    }

    /// Creates a context and translates its error to the setting at fault.
    private static func context(
        _ settings: TLSServerSettings, of configuration: Configuration
    ) throws(ConfigurationError) -> TLSServerContext {
        do throws(TLSSetupError) {
            return try TLSServerContext(settings)
        } catch {
            let tls = Setting.tls
            let (certificates, keys) = (configuration.tlsCertificate, configuration.tlsKey)
            switch error {
            case .certificate(let identity, let reason):
                throw pem(tls.tlsCertificate, certificates[identity]).error(reason)
            case .refused(let identity, let reason):
                throw pem(tls.tlsKey, keys[identity])
                    .error("with \(certificates[identity].quoted(limit: 4096)), \(reason)")
            case .key(let identity, let reason):
                throw pem(tls.tlsKey, keys[identity]).error(reason)
            case .issuers(let reason):
                throw pem(tls.clientCA, configuration.clientCA ?? "").error(reason)
            default:
                throw pem(tls.tlsCertificate, certificates.first ?? "").error(error.message)
            }
        }
    }
}
