package import HTTPRules

extension TokenDigest {
    /// The digest of a token's bytes.
    package init(ofToken token: [UInt8]) {
        self.init(sha256(token.span).span)
    }
}
