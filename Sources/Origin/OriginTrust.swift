package import Wire

/// Whom a TLS client of origins believes, ready to be used.
///
/// Two are equal if they say the same, so that reading the same files again changes nothing: what
/// was verified under one is good under the other.
package final class OriginTrustStore: Sendable {
    let context: TLSClientContext
    package let settings: TLSClientSettings
    private let digest: Int

    /// Reads the issuers that `settings` names.
    package init(_ settings: TLSClientSettings) throws(TLSSetupError) {
        context = try TLSClientContext(settings)
        self.settings = settings
        digest = settings.hashValue
    }
}

extension OriginTrustStore: Hashable {
    package static func == (left: OriginTrustStore, right: OriginTrustStore) -> Bool {
        left === right || left.digest == right.digest && left.settings == right.settings
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(digest)
    }
}
