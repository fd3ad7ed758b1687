/// Which certificates serve which names.
struct CertificateIndex {
    /// Sets of identities by number, each with one certificate for each kind of key; the first is
    /// that of the default.
    private(set) var sets: [[Int]] = []
    /// Which of ``sets`` serves a name.
    private(set) var exact: [String: Int] = [:]
    /// Which of ``sets`` serves all names with one label in front of this.
    private(set) var wildcards: [String: Int] = [:]

    /// A certificate that has the very name comes before one with a wildcard, and then the earlier
    /// before the later.
    init(_ identities: [ServerIdentity]) {
        let all = Array(identities.indices)
        let names = identities[0].names
        // Whoever asks for nothing gets the first certificate, or one for all the same names with
        // a key of another kind.
        let alike = all.filter { index in
            index == 0
                || !(names.exact + names.wildcards).isEmpty
                    && Set(identities[index].names.exact).isSuperset(of: names.exact)
                    && Set(identities[index].names.wildcards).isSuperset(of: names.wildcards)
        }
        _ = addSet(alike, of: identities)
        for index in all {
            for name in identities[index].names.exact where exact[name] == nil {
                let having = all.filter { identities[$0].names.exact.contains(name) }
                let covering = all.filter { identities[$0].names.covers(name) }
                exact[name] = addSet(having + covering, of: identities)
            }
            for name in identities[index].names.wildcards where wildcards[name] == nil {
                let having = all.filter { identities[$0].names.wildcards.contains(name) }
                wildcards[name] = addSet(having, of: identities)
            }
        }
    }

    /// The number of the set with the first of `candidates` for each kind of key.
    private mutating func addSet(_ candidates: [Int], of identities: [ServerIdentity]) -> Int {
        var kinds: Set<CInt> = []
        let set = candidates.filter { kinds.insert(identities[$0].certificate.keyKind).inserted }
        if let known = sets.firstIndex(of: set) { return known }
        sets.append(set)
        return sets.count - 1
    }
}
