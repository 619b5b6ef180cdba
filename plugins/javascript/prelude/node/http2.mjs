// What node:http2 has beside its functions, which say that HTTP/2 is not available: packages read
// the constants when they are loaded.
import http from './http.mjs';

const headers = ':status :method :authority :scheme :path :protocol accept-encoding accept-language accept-ranges accept access-control-allow-credentials ' +
  'access-control-allow-headers access-control-allow-methods access-control-allow-origin access-control-expose-headers access-control-request-headers ' +
  'access-control-request-method age authorization cache-control connection content-disposition content-encoding content-length content-type cookie date ' +
  'etag forwarded host if-modified-since if-none-match if-range last-modified link location range referer server set-cookie strict-transport-security ' +
  'transfer-encoding te upgrade-insecure-requests upgrade user-agent vary x-content-type-options x-frame-options keep-alive proxy-connection ' +
  'x-xss-protection alt-svc content-security-policy early-data expect-ct origin purpose timing-allow-origin x-forwarded-for priority accept-charset ' +
  'access-control-max-age allow content-language content-location content-md5 content-range dnt expect expires from if-match if-unmodified-since ' +
  'max-forwards prefer proxy-authenticate proxy-authorization refresh retry-after trailer tk via warning www-authenticate http2-settings';
const methods = 'ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE ' +
  'MOVE OPTIONS ORDERPATCH PATCH POST PRI PROPFIND PROPPATCH PUT REBIND REPORT SEARCH TRACE UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF ' +
  'VERSION-CONTROL';
const errors = 'NO_ERROR PROTOCOL_ERROR INTERNAL_ERROR FLOW_CONTROL_ERROR SETTINGS_TIMEOUT STREAM_CLOSED FRAME_SIZE_ERROR REFUSED_STREAM CANCEL COMPRESSION_ERROR CONNECT_ERROR ENHANCE_YOUR_CALM INADEQUATE_SECURITY HTTP_1_1_REQUIRED';
const word = (text) => text.replace(/^:/, '').toUpperCase().replace(/'/g, '').replace(/[^A-Z0-9]+/g, '_');
const constants = {};
for (const name of headers.split(' ')) constants[`HTTP2_HEADER_${word(name)}`] = name;
for (const name of methods.split(' ')) constants[`HTTP2_METHOD_${word(name)}`] = name;
for (const [code, text] of Object.entries(http.STATUS_CODES)) constants[`HTTP_STATUS_${word(text).replace(/^IM_A_/, '')}`] = +code;
errors.split(' ').forEach((name, code) => { constants[`NGHTTP2_${name}`] = code; });

export const http2 = () => ({ constants, sensitiveHeaders: Symbol('nodejs.http2.sensitiveHeaders') });
