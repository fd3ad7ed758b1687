package import Ground
import HTTPRules
package import Origin
package import Telemetry
package import Wire

/// The settings of TLS for connections with clients, operators and origins.
package struct TLSConfiguration: Sendable {
    /// The paths of the certificate chains, as many as ``keyFiles``; empty for no TLS.
    package var certificateFiles: [String]
    /// The paths of the private keys, in the order of ``certificateFiles``.
    package var keyFiles: [String]
    /// The addresses on which clients are served in clear text in addition.
    package var plainListen: [ListenAddress]
    /// The oldest version that clients may use.
    package var minimumVersion: TLSVersion
    /// The time limit for a client's handshake.
    package var handshakeTimeout: Interval
    /// The largest number of concurrent handshakes, over all event loops.
    package var handshakesMax: Int
    /// The path of the issuers of operators' certificates; `nil` if operators need none.
    package var clientCAFile: String?
    /// The paths of issuers of origins' certificates, in addition to the system's.
    package var originCAFiles: [String]
    /// The oldest version that origins may use.
    package var originMinimumVersion: TLSVersion
    /// True if HTTP/2 is offered to origins.
    package var offersHTTP2: Bool
    /// The parsed contents of the files, as of the last load.
    package var material = TLSMaterial()

    /// Creates the settings from resolved values; the files are not read yet.
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

/// The parsed certificates, keys and issuers, ready to use, so that a bad file is found before
/// anything changes.
package struct TLSMaterial: Sendable {
    /// The context for clients; `nil` without certificates.
    package private(set) var server: TLSServerContext?
    /// The context for operators; `nil` if the admin port uses clear text.
    package private(set) var admin: TLSServerContext?

    /// The issuers that are trusted for origins; `nil` for the system's.
    package private(set) var origins: OriginTrustStore?
    /// The issuers and pins that are trusted for the origins of sites with settings of their own.
    package private(set) var sites: [SitePattern: OriginTrustStore] = [:]

    /// Creates material without TLS.
    package init() {}

    /// Reads the files that `configuration` and `sites` name.
    ///
    /// - Throws: the fault of a file that cannot be used.
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

    /// Reads the issuers and pins for origins.
    private mutating func readTrust(
        of configuration: TLSConfiguration, sites table: SiteTable
    ) throws(ConfigurationError) {
        var issuers: [UInt8] = []
        for file in configuration.originCAFiles {
            let pem = try Self.read(file, of: .originCA)
            // Each file alone, which tells which one is at fault.
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

    /// Returns the reason of an error without its subject.
    private static func reason(_ error: TLSSetupError) -> String {
        if case .issuers(let reason) = error { reason } else { error.message }
    }

    /// Reads a file that a site names.
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

    /// Reads a file that a setting names.
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

    /// Returns the OCSP response beside a certificate's file, whose name has `.ocsp` appended;
    /// `nil` if there is none.
    private static func staple(_ certificate: String) -> [UInt8]? {
        try? ConfigurationSources.read(certificate + ".ocsp")
    }

    /// Creates a context and translates its error to the setting at fault.
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
