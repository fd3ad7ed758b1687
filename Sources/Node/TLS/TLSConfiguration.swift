package import Ground
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
