# A site cached by Varnish, as many are: the configuration that nuthatch.yaml replaces.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "9000";
    .connect_timeout = 5s;
    .first_byte_timeout = 60s;
    .between_bytes_timeout = 30s;
    .max_connections = 256;
}

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(403, "Not allowed"));
        }
        return (purge);
    }
    if (req.method == "BAN") {
        if (client.ip !~ purgers) {
            return (synth(403, "Not allowed"));
        }
        ban("obj.http.Cache-Tags ~ " + req.http.Cache-Tags);
        return (synth(200, "Banned"));
    }
    # Campaign parameters are not part of the cache key.
    if (req.url ~ "[?&](utm_[a-z]+|gclid|fbclid)=") {
        set req.url = regsuball(req.url, "(utm_[a-z]+|gclid|fbclid)=[^&]*&?", "");
        set req.url = regsub(req.url, "[?&]$", "");
    }
    if (req.http.Accept-Encoding) {
        if (req.http.Accept-Encoding ~ "gzip") {
            set req.http.Accept-Encoding = "gzip";
        } else {
            unset req.http.Accept-Encoding;
        }
    }
    # Static files are the same for all clients.
    if (req.url ~ "^/images/") {
        unset req.http.Cookie;
    }
}

sub vcl_backend_response {
    if (beresp.status == 404 && !beresp.http.Cache-Control) {
        set beresp.ttl = 1m;
    }
    if (bereq.url ~ "^/images/") {
        unset beresp.http.Set-Cookie;
    }
    set beresp.grace = 1h;
}

sub vcl_deliver {
    unset resp.http.Cache-Tags;
    unset resp.http.X-Powered-By;
}
