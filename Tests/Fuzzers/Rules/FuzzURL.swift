import Ground
import HTTPRules

/// A small limit, so that an input of the fuzzer's length can exceed it.
private let bytesMax = 200

/// URLs as clients and redirects send them, and request targets that contain them.
///
/// Invariants: a key is canonical, so that normalising it again changes nothing, and can be split
/// for the origin; `isCanonical` agrees with the normaliser on every input; the image API finds its
/// URL inside the target.
func fuzzURL(_ input: [UInt8]) {
    let all = 0..<input.count
    var key: [UInt8] = []

    if CacheKey.normalise(url: input.span, at: all, into: &key, bytesMax: bytesMax) == .normalised {
        check(key)
    }

    let made =
        CacheKey.normalise(percentEncoded: input.span, at: all, into: &key, bytesMax: bytesMax)
        == .normalised
    if made { check(key) }
    let isCanonical = CacheKey.isCanonical(input.span, at: all, bytesMax: bytesMax)
    precondition(isCanonical == (made && key == input))

    if case .image(let url) = ImageTarget.parse(input.span, at: all) {
        precondition(!url.isEmpty && url.end <= input.count)
    }
}

private func check(_ key: [UInt8]) {
    precondition(!key.isEmpty && key.count <= bytesMax)
    for byte in key { precondition((0x21...0x7E).contains(byte) && byte != UInt8(ascii: "#")) }
    var again: [UInt8] = []
    precondition(
        CacheKey.normalise(url: key.span, at: 0..<key.count, into: &again, bytesMax: bytesMax)
            == .normalised)
    precondition(again == key)
    guard let url = OriginURL(canonical: key.span, at: 0..<key.count) else {
        preconditionFailure("a canonical key that cannot be taken apart")
    }
    precondition(!url.host.isEmpty && url.authority.end == Int(url.target.start))
    precondition(url.target.end == key.count && key[Int(url.target.start)] == UInt8(ascii: "/"))
}
