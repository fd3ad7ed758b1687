import Ground

extension ProblemDocument {
    /// The answer to a request whose signature is refused.
    ///
    /// 403 for what nobody with a key has signed, 410 for what was good and will never be again,
    /// 400 for what cannot be read.
    package init(_ refusal: SignatureRefusal) {
        switch refusal {
        case .unsigned:
            self.init(
                status: 403, name: "url-unsigned", title: "The URL is not signed",
                detail: "Only signed URLs are served here: ?signature=… or "
                    + "?expires=<seconds since 1970>&signature=… at the end of the query.")
        case .forged:
            self.init(
                status: 403, name: "url-signature", title: "The URL's signature is wrong",
                detail: "None of this node's keys gives this signature: the URL or its expires was "
                    + "changed after it was signed, or it was signed with another key.")
        case .expired(let at):
            self.init(
                status: 410, name: "url-expired", title: "The signed URL has expired",
                detail: "Its signature is right and was good until \(at.seconds) (seconds since "
                    + "1970). A new URL has to be signed.")
        case .malformed(let fault):
            self.init(
                status: 400, name: "url-signature-malformed",
                title: "The URL's signature cannot be read", detail: fault.message)
        }
    }
}

extension SignatureFault {
    /// What is wrong, and what is allowed.
    package var message: String {
        switch self {
        case .signatureNotLast:
            "The parameter signature must be the last of the query; something stands behind it."
        case .signatureDuplicated: "The parameter signature comes twice; it is allowed once."
        case .signatureSyntax:
            "The parameter signature is not \(Signature.textBytesCount) letters of "
                + "base64url without "
                + "padding, or its last letter is none that \(Signature.bytesCount) bytes end in."
        case .expiresMisplaced:
            "The parameter expires must stand right before the parameter signature."
        case .expiresDuplicated: "The parameter expires comes twice; it is allowed once."
        case .expiresSyntax:
            "The parameter expires is not a number of 1 to \(SignedTarget.expiryMax.seconds) in "
                + "decimal digits without leading zeros: seconds since 1970, not milliseconds."
        }
    }
}
