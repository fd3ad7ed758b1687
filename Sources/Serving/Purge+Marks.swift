package import Cluster
package import Ground
package import Tiers

extension Purge {
    /// What it leaves where entries are kept, applied at `stamp`.
    package func marks(at stamp: Stamp) -> [DiskMark] {
        targets.map { DiskMark($0.markTarget, isSoft: mode == .soft, stamp: stamp) }
    }
}

extension Purge.Target {
    /// What it covers where entries are kept.
    package var markTarget: DiskMark.Target {
        switch self {
        case .url(let url): .url(url)
        case .prefix(let host, let path): path.isEmpty ? .host(host) : .prefix(host + path)
        case .tag(let tag): .tag(tag)
        case .everything: .everything
        }
    }
}
