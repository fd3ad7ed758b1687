import Ground

/// The URLs of the image optimiser of Next.js ("Image component"): `/_next/image?url=URL&w=…&q=…`.
enum NextImageTarget {
    /// The value of the only `url`: a path of the site's own, or an absolute URL.
    ///
    /// The optimiser refuses all else, two of them and a URL without a scheme too.
    static func reference(_ target: SplitTarget, of origin: BaseURL) -> OriginalReference? {
        guard
            target.path.elementsEqual("/_next/image".utf8)
                || target.path.elementsEqual("/_next/image/".utf8)
        else { return nil }
        let values = target.parameters.filter { $0.name.elementsEqual("url".utf8) }
        guard values.count == 1,
            let url = PercentEncoding.decoded(values[0].value, plusIsSpace: true),
            !url.starts(with: "//".utf8)
        else { return nil }
        let isPath = url.first == UInt8(ascii: "/")
        guard isPath || OriginalReference.isURL(url) else { return nil }
        return OriginalReference(text: url, base: isPath ? OriginalBase(origin) : nil)
    }
}
