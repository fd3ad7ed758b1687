import Ground

/// The URLs of wsrv.nl, once images.weserv.nl ("Quick reference"): `/?url=URL&w=…`.
enum WeservTarget {
    /// The value of the first `url`; without a scheme it is of http, behind `ssl:` or two slashes
    /// of https.
    static func reference(_ target: SplitTarget) -> OriginalReference? {
        guard target.path.isEmpty || target.path.elementsEqual("/".utf8),
            let parameter = target.parameters.first(where: isURL),
            let url = PercentEncoding.decoded(parameter.value)
        else { return nil }
        for start in ["ssl:", "//"] {
            guard url.prefix(start.utf8.count).map(ASCII.lowercased).elementsEqual(start.utf8)
            else { continue }
            let name = url.dropFirst(start.utf8.count)
            return OriginalBase.https.joined(with: Array(name)).map {
                OriginalReference(text: $0, base: nil)
            }
        }
        return OriginalReference(text: url, base: .http)
    }

    /// The service finds its parameters without regard to case.
    private static func isURL(_ parameter: SplitTarget.Parameter) -> Bool {
        parameter.name.map(ASCII.lowercased).elementsEqual("url".utf8)
    }
}
