import Ground
import HTTPRules

/// Request targets with signatures, and files of signing keys.
///
/// Invariants: a target read as signed equals the text written from its parts, so that it has one
/// form; the unsigned target is not signed again; keys have allowed lengths, and are written as
/// they were read.
func fuzzSigned(_ input: [UInt8]) {
    checkTarget(input)
    checkKeys(input)
}

private func checkTarget(_ input: [UInt8]) {
    guard case .signed(let signed) = SignedTarget.parse(input.span, at: 0..<input.count) else {
        return
    }
    var written = Array(input[signed.unsignedTarget.range])
    let unsigned = SignedTarget.parse(written.span, at: 0..<written.count)
    precondition(unsigned == .unsigned)
    SignatureBase.append(signed.signature, expiry: signed.expiry, to: &written)
    precondition(written == input)
}

private func checkKeys(_ input: [UInt8]) {
    do throws(SigningKeyFault) {
        let keys = try SigningKey.keys(of: input)
        precondition((1...SigningKey.countMax).contains(keys.count))
        var written: [UInt8] = []
        for key in keys {
            precondition(
                (SigningKey.secretBytesMin...SigningKey.secretBytesMax).contains(key.secret.count))
            if !key.name.isEmpty { written += Array((key.name + ":").utf8) }
            written += key.secret + [UInt8(ascii: "\n")]
        }
        let again = try SigningKey.keys(of: written)
        precondition(again == keys)
    } catch {
        precondition(!error.message.isEmpty)
    }
}
