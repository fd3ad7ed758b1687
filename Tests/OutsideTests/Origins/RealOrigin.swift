import Foundation
import Harness

/// A third-party web server that serves a folder.
final class RealOrigin {
    enum Server: String, CaseIterable, Sendable {
        case nginx
        case apache2
        case python3
        /// HAProxy in front of nginx.
        case haproxy

        /// True if everything that it needs is installed.
        var isInstalled: Bool {
            let needed = self == .haproxy ? ["haproxy", "nginx"] : [rawValue]
            return needed.allSatisfy { (try? Program.find($0)) != nil }
        }
    }

    struct NotReady: Error, CustomStringConvertible {
        let description: String
    }

    let port: Int
    private let program: Program
    private let folder: TemporaryFolder
    /// The server behind this one.
    private let behind: RealOrigin?

    /// Starts `server` on a free port and waits until it responds.
    init(_ server: Server, serving path: String, keepsAlive: Bool) throws {
        folder = try TemporaryFolder()
        port = try ReservedPort.forProcess()
        behind =
            server == .haproxy
            ? try RealOrigin(.nginx, serving: path, keepsAlive: keepsAlive) : nil
        let setup = Setup(
            port: port, path: path, folder: folder.path, keepsAlive: keepsAlive,
            behindPort: behind?.port)
        let file = try folder.write(setup.text(server), to: "configuration").path
        program = try Program(try Program.find(server.rawValue), setup.arguments(server, file))
        let port = port
        let isReady = Deadline.seconds(20).waitUntil { [program] in
            guard program.isRunning else { return true }
            return (try? HTTPConnection(port: port).get("/", seconds: 5).status) ?? 0 > 0
        }
        guard isReady, program.isRunning else {
            throw NotReady(description: "\(server) did not come up: \(program.errors)")
        }
    }

    deinit { program.kill() }
}

/// The configuration of each server.
private struct Setup {
    let port: Int
    let path: String
    let folder: String
    let keepsAlive: Bool
    let behindPort: Int?

    func arguments(_ server: RealOrigin.Server, _ file: String) -> [String] {
        switch server {
        case .nginx: ["-p", folder, "-e", "\(folder)/errors", "-c", file]
        case .apache2: ["-X", "-d", folder, "-f", file]
        case .haproxy: ["-db", "-f", file]
        case .python3:
            [
                "-m", "http.server", "\(port)", "--bind", "127.0.0.1", "--directory", path,
                "--protocol", keepsAlive ? "HTTP/1.1" : "HTTP/1.0",
            ]
        }
    }

    func text(_ server: RealOrigin.Server) -> String {
        switch server {
        case .nginx: nginx
        case .apache2: apache
        case .haproxy: haproxy
        case .python3: ""
        }
    }

    private var nginx: String {
        """
        daemon off;
        master_process off;
        pid \(folder)/pid;
        error_log \(folder)/errors;
        events {}
        http {
            access_log off;
            client_body_temp_path \(folder)/body;
            proxy_temp_path \(folder)/proxy;
            fastcgi_temp_path \(folder)/fastcgi;
            uwsgi_temp_path \(folder)/uwsgi;
            scgi_temp_path \(folder)/scgi;
            types { image/jpeg jpg; image/png png; image/gif gif; }
            keepalive_timeout \(keepsAlive ? "60s" : "0");
            server { listen 127.0.0.1:\(port); root \(path); }
        }
        """
    }

    private var apache: String {
        """
        ServerName localhost
        Listen 127.0.0.1:\(port)
        PidFile \(folder)/pid
        ErrorLog \(folder)/errors
        Mutex file:\(folder)
        LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
        LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
        LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
        User nobody
        Group nogroup
        TypesConfig /dev/null
        AddType image/jpeg .jpg
        AddType image/png .png
        AddType image/gif .gif
        KeepAlive \(keepsAlive ? "On" : "Off")
        MaxKeepAliveRequests 0
        DocumentRoot \(path)
        <Directory \(path)>
            Require all granted
        </Directory>
        """
    }

    private var haproxy: String {
        """
        defaults
            mode http
            timeout connect 5s
            timeout client 60s
            timeout server 60s
            option \(keepsAlive ? "http-keep-alive" : "httpclose")
        listen images
            bind 127.0.0.1:\(port)
            server nginx 127.0.0.1:\(behindPort ?? 0)

        """
    }
}
