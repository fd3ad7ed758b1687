package import Ground
import HTTPRules
package import Origin
package import Telemetry
package import Wire

/// How connections are encrypted, to clients and to origins.
package struct TLSConfiguration: Sendable {
    /// As many as ``keyFiles``; empty for no TLS.
    package var certificateFiles: [String]
    package var keyFiles: [String]
    package var plainListen: [ListenAddress]
    /// Of clients.
    package var minimumVersion: TLSVersion
    package var handshakeTimeout: Interval
    /// Over all loops.
    package var handshakesMax: Int
    /// Nil if operators show no certificates.
    package var clientCAFile: String?
    package var originCAFiles: [String]
    package var originMinimumVersion: TLSVersion
    /// To origins.
    package var offersHTTP2: Bool
    /// What the files held when they were last read.
    package var material = TLSMaterial()

    init(_ values: ConfigurationValues) {
        certificateFiles = values.paths(.tlsCertificate)
        keyFiles = values.paths(.tlsKey)
        plainListen = values.addresses(.plainListen)
        minimumVersion = values.tlsVersion(.tlsMinimum)
        handshakeTimeout = values.interval(.tlsHandshakeTimeout)
        handshakesMax = values.count(.tlsHandshakesLimit)
        clientCAFile = values.path(.clientCA)
        originCAFiles = values.paths(.originCA)
        originMinimumVersion = values.tlsVersion(.originTLSMinimum)
        offersHTTP2 = values.isOn(.originHTTP2)
    }
}

/// What the files of certificates and keys come to: ready to be used, because a file that is of no
/// use must be found before anything changes.
package struct TLSMaterial: Sendable {
    /// For clients; nil without certificates.
    package private(set) var server: TLSServerContext?
    /// For operators; nil if the admin port is in clear text.
    package private(set) var admin: TLSServerContext?

    /// Whom to believe as an origin; nil for the issuers of this machine.
    package private(set) var origins: OriginTrustStore?
    /// The same for the origins of sites that have their own.
    package private(set) var sites: [SitePattern: OriginTrustStore] = [:]

    /// No TLS.
    package init() {}

    /// Reads the files that `configuration` and `sites` name.
    init(
        of configuration: TLSConfiguration, sites: SiteTable
    ) throws(ConfigurationError) {
        try readTrust(of: configuration, sites: sites)
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
        settings.protocols = [.http11, .http10]
        admin = try Self.context(settings, of: configuration)
    }

    private mutating func readTrust(
        of configuration: TLSConfiguration, sites table: SiteTable
    ) throws(ConfigurationError) {
        var issuers: [UInt8] = []
        for file in configuration.originCAFiles {
            let pem = try Self.read(file, of: .originCA)
            // Alone, so that the fault is known to be in this one.
            do throws(TLSSetupError) {
                _ = try OriginTrustStore(TLSClientSettings(trustsSystem: false, issuersPEM: pem))
            } catch {
                throw .tls(.originCA, file: file, reason: Self.reason(error))
            }
            issuers += pem + [0x0A]
        }
        var settings = TLSClientSettings(
            issuersPEM: issuers.isEmpty ? nil : issuers,
            minimumVersion: configuration.originMinimumVersion,
            protocols: configuration.offersHTTP2 ? [.http2, .http11] : [.http11])
        do throws(TLSSetupError) {
            origins = try OriginTrustStore(settings)
        } catch {
            throw .tls(
                .originCA, file: configuration.originCAFiles.first ?? "",
                reason: Self.reason(error))
        }
        settings.trustsSystem = false
        for site in table.sites {
            let pins = site.settings.originPins.compactMap { TLSPin($0) }
            guard site.settings.originCAFile != nil || !pins.isEmpty else { continue }
            settings.pins = pins
            settings.issuersPEM = try site.settings.originCAFile.map {
                file throws(ConfigurationError) in
                try Self.read(file, of: site)
            }
            do throws(TLSSetupError) {
                sites[site.pattern] = try OriginTrustStore(settings)
            } catch {
                throw .siteTLS(
                    site.pattern, .originCA, file: site.settings.originCAFile ?? "",
                    reason: Self.reason(error))
            }
        }
    }

    private static func reason(_ error: TLSSetupError) -> String {
        if case .issuers(let reason) = error { reason } else { error.message }
    }

    private static func read(
        _ file: String, of site: Site
    ) throws(ConfigurationError) -> [UInt8] {
        do throws(ConfigurationError) {
            return try ConfigurationSources.read(file)
        } catch {
            guard case .unreadableFile(_, let reason) = error else { throw error }
            throw .siteTLS(site.pattern, .originCA, file: file, reason: reason)
        }
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
            case .certificate(let identity, let reason):
                throw .tls(
                    .tlsCertificate, file: configuration.certificateFiles[identity],
                    reason: reason)
            case .refused(let identity, let reason):
                let certificate = configuration.certificateFiles[identity]
                throw .tls(
                    .tlsKey, file: configuration.keyFiles[identity],
                    reason: "with \(certificate.quoted(limit: 4096)), \(reason)")
            case .key(let identity, let reason):
                throw .tls(.tlsKey, file: configuration.keyFiles[identity], reason: reason)
            case .issuers(let reason):
                throw .tls(.clientCA, file: configuration.clientCAFile ?? "", reason: reason)
            default:
                throw .tls(
                    .tlsCertificate, file: configuration.certificateFiles.first ?? "",
                    reason: error.message)
            }
        }
    }
}
